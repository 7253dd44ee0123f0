package tsvd;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import tsvd.internal.Check;
import tsvd.internal.Layout;
import tsvd.internal.Native;
import tsvd.internal.Structs;

/**
 * The native memory of a handle: the structures that its calls pass, one after the other, and
 * scratch for numbers that lie in Java arrays. A call needs no other memory of its own.
 */
final class Frame {
    private static final int ALIGNMENT = 64;
    /** Scratch of more bytes than this is given back after each call. */
    private static final long SCRATCH_KEPT = 1 << 20;
    /** Most arrays of a call: d, e, L, s and R. */
    private static final int ARRAYS = 5;

    private static final int ERROR = 0;
    private static final int CONFIG = after(ERROR, Structs.ERROR);
    private static final int OPTIONS = after(CONFIG, Structs.CONFIG);
    private static final int INFO = after(OPTIONS, Structs.OPTIONS);
    private static final int INVERSE_INFO = after(INFO, Structs.INFO);
    private static final int OUT = after(INVERSE_INFO, Structs.INVERSE_INFO);
    private static final int FIRST_ARRAY = OUT + ALIGNMENT;
    private static final int BYTES = FIRST_ARRAY + ARRAYS * after(0, Structs.ARRAY);

    private static int after(int offset, Layout struct) {
        return (offset + struct.size() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    // Offsets of fields that every call uses.
    private static final int A_DATA = Structs.ARRAY.offset("data");
    private static final int A_SPACE = Structs.ARRAY.offset("space");
    private static final int A_DTYPE = Structs.ARRAY.offset("dtype");
    private static final int A_NDIM = Structs.ARRAY.offset("ndim");
    private static final int A_SHAPE = Structs.ARRAY.offset("shape");
    private static final int A_STRIDES = Structs.ARRAY.offset("strides");
    static final int HOST = 1;

    private final Native api;
    private final long address;
    private final ByteBuffer bytes;
    private long scratch;
    private long scratchBytes;
    private Options put;
    private long putFirst;
    private long putCount;

    Frame(Native api) {
        this.api = api;
        address = allocate(api, BYTES);
        bytes = api.view(address, BYTES);
        api.configInit(config(), Structs.CONFIG.size());
        api.optionsInit(options(), Structs.OPTIONS.size());
        bytes.putLong(INFO + Structs.INFO.offset("size"), Structs.INFO.size());
        bytes.putLong(INVERSE_INFO + Structs.INVERSE_INFO.offset("size"),
                Structs.INVERSE_INFO.size());
    }

    static long allocate(Native api, long bytes) {
        long memory = api.allocate(bytes);
        if (memory == 0) {
            throw new TsvdException(Status.MEMORY,
                    "there are no " + bytes + " bytes of host memory", "", -1, Device.CPU.number(),
                    0, bytes, 0);
        }
        return memory;
    }

    void free() {
        api.free(scratch);
        api.free(address);
        scratch = 0;
    }

    // ---- addresses ----

    long error() {
        return address + ERROR;
    }

    long config() {
        return address + CONFIG;
    }

    long options() {
        return address + OPTIONS;
    }

    long info() {
        return address + INFO;
    }

    long inverseInfo() {
        return address + INVERSE_INFO;
    }

    /** Of result i of 8 bytes, i < 2. */
    long out(int i) {
        return address + OUT + i * Long.BYTES;
    }

    long outValue(int i) {
        return bytes.getLong(OUT + i * Long.BYTES);
    }

    long array(int i) {
        return address + arrayOffset(i);
    }

    private static int arrayOffset(int i) {
        return FIRST_ARRAY + i * after(0, Structs.ARRAY);
    }

    // ---- what goes in ----

    void putConfig(int device, int threads, long blas) {
        bytes.putInt(CONFIG + Structs.CONFIG.offset("device"), device);
        bytes.putInt(CONFIG + Structs.CONFIG.offset("threads"), threads);
        bytes.putLong(CONFIG + Structs.CONFIG.offset("blas"), blas);
    }

    /** Most calls have the options of the call before. */
    void putOptions(Options o, long first, long count) {
        if (o == put && first == putFirst && count == putCount) {
            return;
        }
        put = o;
        putFirst = first;
        putCount = count;
        putInt("method", o.method.ordinal());
        putInt("lower", o.lower ? 1 : 0);
        putLong("first", first);
        putLong("count", count);
        putLong("eps", Double.doubleToRawLongBits(o.eps));
        putLong("max_sweeps", o.maxSweeps);
        putInt("check_finite", o.checkFinite ? 1 : 0);
        putLong("givens_blocks", o.givensBlocks);
        putLong("givens_threads", o.givensThreads);
        putInt("givens_split", o.givensSplit ? 1 : 0);
        putInt("fallback", o.fallback ? 1 : 0);
        putInt("dense_stages", o.denseStages);
        putLong("check", api.check());
    }

    private void putInt(String option, int value) {
        bytes.putInt(OPTIONS + Structs.OPTIONS.offset(option), value);
    }

    private void putLong(String option, long value) {
        bytes.putLong(OPTIONS + Structs.OPTIONS.offset(option), value);
    }

    /**
     * Describes arrays for the library, and copies numbers of the first {@code inputs}, if they lie
     * in Java arrays, to the scratch. Arrays may be null.
     */
    void place(int inputs, NDArray... arrays) {
        long needed = 0;
        for (int i = 0; i < arrays.length; i++) {
            NDArray array = arrays[i];
            if (array != null) {
                needed += array.storage.array() == null ? 0 : copied(array);
                if (i >= inputs) {
                    checkResult(i, inputs, arrays);
                }
            }
        }
        reserve(needed);
        long free = scratch;
        for (int i = 0; i < arrays.length; i++) {
            NDArray array = arrays[i];
            if (array == null) {
                continue;
            }
            long data = array.storage.address();
            if (array.storage.array() != null) {
                data = free - array.first() * array.dtype.bytes();
                if (i < inputs) {
                    move(array, free, true);
                }
                free += copied(array);
            }
            describe(arrayOffset(i), array, data + array.offset * array.dtype.bytes());
        }
    }

    private static void checkResult(int i, int inputs, NDArray[] arrays) {
        NDArray result = arrays[i];
        if (result.storage.readOnly()) {
            throw new IllegalArgumentException("a result cannot be written to read-only memory");
        }
        for (int j = inputs; j < i; j++) { // in native memory the library sees it
            NDArray other = arrays[j];
            if (other != null && other.storage.array() != null
                    && other.storage.array() == result.storage.array()
                    && other.first() * other.dtype.parts < result.end() * result.dtype.parts
                    && result.first() * result.dtype.parts < other.end() * other.dtype.parts) {
                throw new IllegalArgumentException("two results overlap");
            }
        }
    }

    /** Bytes of the scratch that the numbers of an array take. */
    private static long copied(NDArray array) {
        long entries = array.end() - array.first();
        return (entries * array.dtype.bytes() / ALIGNMENT + 1) * ALIGNMENT;
    }

    private void reserve(long needed) {
        if (needed > scratchBytes) {
            api.free(scratch);
            scratch = 0;
            scratchBytes = 0;
            scratch = allocate(api, needed);
            scratchBytes = needed;
        }
    }

    /** Copies the numbers that an array reaches between its Java array and the scratch. */
    private void move(NDArray array, long at, boolean in) {
        int parts = array.dtype.parts;
        int first = (int) (array.first() * parts);
        int count = (int) ((array.end() - array.first()) * parts);
        if (count == 0) {
            return;
        }
        if (in) {
            api.toNative(array.storage.array(), first, count, at);
        } else {
            api.fromNative(at, array.storage.array(), first, count);
        }
    }

    private void describe(int at, NDArray array, long data) {
        bytes.putLong(at + A_DATA, data);
        bytes.putInt(at + A_SPACE, HOST);
        bytes.putInt(at + A_DTYPE, array.dtype.number());
        bytes.putInt(at + A_NDIM, array.shape.length);
        for (int i = 0; i < array.shape.length; i++) {
            bytes.putLong(at + A_SHAPE + i * Long.BYTES, array.shape[i]);
            bytes.putLong(at + A_STRIDES + i * Long.BYTES, array.strides[i] * array.dtype.bytes());
        }
    }

    // ---- what comes out ----

    /** After a success: copies results from the scratch to the Java arrays; as place() has them. */
    void deliver(int inputs, NDArray... arrays) {
        long used = scratch;
        for (int i = 0; i < arrays.length; i++) {
            if (arrays[i] != null && arrays[i].storage.array() != null) {
                if (i >= inputs) {
                    move(arrays[i], used, false);
                }
                used += copied(arrays[i]);
            }
        }
    }

    /** After every call. */
    void release() {
        if (scratchBytes > SCRATCH_KEPT) {
            api.free(scratch);
            scratch = 0;
            scratchBytes = 0;
        }
    }

    Info readInfo() {
        return new Info(Method.of(bytes.getInt(INFO + Structs.INFO.offset("method"))),
                infoLong("sweeps"), infoLong("iterations"), infoLong("iterations_saved"),
                infoLong("rotations"), infoLong("deflated"), infoLong("refused"),
                Double.longBitsToDouble(infoLong("seconds_total")));
    }

    private long infoLong(String field) {
        return bytes.getLong(INFO + Structs.INFO.offset(field));
    }

    Inverse readInverse(NDArray x) {
        return new Inverse(x, inverseDouble("rcond"),
                bytes.getLong(INVERSE_INFO + Structs.INVERSE_INFO.offset("matrix")),
                inverseDouble("seconds_total"));
    }

    private double inverseDouble(String field) {
        return bytes.getDouble(INVERSE_INFO + Structs.INVERSE_INFO.offset(field));
    }

    void check(int status) {
        check(api, status, error());
    }

    /** Throws what the library has put into the tsvd_error at that address. */
    static void check(Native api, int status, long error) {
        if (status != 0) {
            ByteBuffer e = api.view(error, Structs.ERROR.size());
            throw new TsvdException(Status.of(status), text(e, "text", 1024),
                    text(e, "advice", 256),
                    e.getLong(Structs.ERROR.offset("matrix")),
                    e.getInt(Structs.ERROR.offset("device")),
                    e.getLong(Structs.ERROR.offset("sweeps")),
                    e.getLong(Structs.ERROR.offset("wanted")),
                    e.getLong(Structs.ERROR.offset("available")));
        }
    }

    private static String text(ByteBuffer error, String field, int most) {
        byte[] text = new byte[most];
        int offset = Structs.ERROR.offset(field);
        int length = 0;
        while (length < most && error.get(offset + length) != 0) {
            text[length] = error.get(offset + length);
            length++;
        }
        return new String(text, 0, length, StandardCharsets.UTF_8);
    }

    /** Begins the part of a call in which the library may ask whether to stop. */
    static Check begin(ProgressListener listener) {
        return Check.begin(listener == null ? null : listener::progress);
    }
}
