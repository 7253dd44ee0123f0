package tsvd.internal;

import java.lang.reflect.InvocationTargetException;
import java.nio.Buffer;
import java.nio.ByteBuffer;

/**
 * All that the rest needs of native code, once through java.lang.foreign and once through JNA. It
 * knows no structure and no rule of the library: an address is a long, and the functions of tsvd.h
 * have its names without the prefix.
 */
public abstract class Native {
    /** For the two back ends. */
    protected Native() {
    }

    /**
     * The one back end of this process; it is chosen and loaded at the first call.
     *
     * @return never null
     */
    public static Native get() {
        return Chosen.NATIVE;
    }

    private static final class Chosen {
        static final Native NATIVE = choose();

        /** FFM where the JDK has it, or what the property tsvd.backend names. */
        private static Native choose() {
            String wanted = System.getProperty("tsvd.backend");
            String usual = Runtime.version().feature() >= 22 ? "ffm" : "jna";
            String name = wanted != null ? wanted : usual;
            try {
                return (Native) Class.forName(switch (name) {
                    case "ffm" -> "tsvd.internal.ForeignNative";
                    case "jna" -> "tsvd.internal.JnaNative";
                    default -> throw new IllegalArgumentException(
                            "the property tsvd.backend is ffm or jna, not " + name);
                }).getDeclaredConstructor().newInstance();
            } catch (ClassNotFoundException | UnsupportedClassVersionError
                    | NoClassDefFoundError e) {
                throw new UnsatisfiedLinkError("the back end " + name + " of tsvd cannot be used ("
                        + e + "): ffm needs JDK 22, and a tsvd that such a JDK has built; jna "
                        + "needs net.java.dev.jna:jna 5.13 on the class path");
            } catch (InvocationTargetException e) {
                throw e.getCause() instanceof Error error ? error : new LinkageError(name, e);
            } catch (ReflectiveOperationException e) {
                throw new LinkageError(name, e);
            }
        }
    }

    /**
     * The name of the back end.
     *
     * @return "ffm" or "jna"
     */
    public abstract String name();

    // ---- memory ----

    /**
     * The C library's malloc.
     *
     * @param bytes &gt; 0
     * @return an address; 0: there is none
     */
    public abstract long allocate(long bytes);

    /**
     * The C library's free.
     *
     * @param address what allocate gave, or 0
     */
    public abstract void free(long address);

    /**
     * Native memory as a buffer of the machine's byte order.
     *
     * @param address the first byte
     * @param bytes its length
     * @return valid as long as the memory is
     */
    public abstract ByteBuffer view(long address, int bytes);

    /**
     * The address of a direct buffer's first byte, whatever its position is.
     *
     * @param direct a direct buffer
     * @return an address
     */
    public abstract long address(Buffer direct);

    /**
     * Copies numbers to native memory.
     *
     * @param from double[] or float[]
     * @param first index of the first number
     * @param count of numbers
     * @param to an address
     */
    public abstract void toNative(Object from, int first, int count, long to);

    /**
     * Copies numbers from native memory.
     *
     * @param from an address
     * @param to double[] or float[]
     * @param first index of the first number
     * @param count of numbers
     */
    public abstract void fromNative(long from, Object to, int first, int count);

    /**
     * Text of C.
     *
     * @param address of UTF-8 that ends with zero
     * @return the text
     */
    public abstract String string(long address);

    // ---- functions ----

    /**
     * The address of the C function that is {@link Check#ask}.
     *
     * @return the same for the whole life of the process
     */
    public abstract long check();

    /**
     * The address of a function of another library.
     *
     * @param library a path, or a name that the system's loader finds
     * @param name of the function
     * @return 0: there is no such library or function
     */
    public abstract long symbol(String library, String name);

    // Those of tsvd.h, with pointers, size_t and int64_t as long.

    public abstract long version();

    public abstract int hasBlas();

    public abstract int hostThreads();

    public abstract int cudaDeviceCount(long count, long error);

    public abstract int cudaLoad(long file, long error);

    public abstract void configInit(long config, long size);

    public abstract void optionsInit(long options, long size);

    public abstract int create(long config, long handle, long error);

    public abstract void destroy(long handle);

    public abstract int setThreads(long handle, int threads, long error);

    public abstract int trim(long handle, long error);

    public abstract int svd(long handle, long d, long e, long options, long L, long s, long R,
            long info, long error);

    public abstract int select(long handle, long d, long e, long options, double low, double high,
            long first, long count, long error);

    public abstract int denseSvd(long handle, long a, long options, long U, long S, long Vh,
            long info, long error);

    public abstract int denseReduce(long handle, long a, long options, long reduction, long error);

    public abstract int reductionSelect(long reduction, double low, double high, long first,
            long count, long error);

    public abstract int reductionSvd(long reduction, long options, long U, long S, long Vh,
            long info, long error);

    public abstract void reductionDestroy(long reduction);

    public abstract int denseInverse(long handle, long a, long options, int refine, long X,
            long info, long error);
}
