package tsvd.internal;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The back end through JNA, for every JDK from 17 on. */
final class JnaNative extends Native {
    /** int (*)(void *, double). */
    interface CheckFunction extends Callback {
        int call(long argument, double done);
    }

    private final CheckFunction check = Check::ask; // JNA holds it weakly
    private final long checkAddress =
            Pointer.nativeValue(CallbackReference.getFunctionPointer(check));

    /** What JNA would close once nothing refers to it. */
    private final Set<NativeLibrary> kept = ConcurrentHashMap.newKeySet();

    JnaNative() {
        LibraryFile.open(file -> {
            com.sun.jna.Native.register(C.class, NativeLibrary.getInstance(file.toString()));
            return null;
        });
    }

    @Override
    public String name() {
        return "jna";
    }

    @Override
    public long allocate(long bytes) {
        return com.sun.jna.Native.malloc(bytes);
    }

    @Override
    public void free(long address) {
        com.sun.jna.Native.free(address);
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        return new Pointer(address).getByteBuffer(0, bytes).order(ByteOrder.nativeOrder());
    }

    @Override
    public long address(Buffer direct) {
        return Pointer.nativeValue(com.sun.jna.Native.getDirectBufferPointer(direct));
    }

    @Override
    public void toNative(Object from, int first, int count, long to) {
        if (from instanceof double[] numbers) {
            new Pointer(to).write(0, numbers, first, count);
        } else {
            new Pointer(to).write(0, (float[]) from, first, count);
        }
    }

    @Override
    public void fromNative(long from, Object to, int first, int count) {
        if (to instanceof double[] numbers) {
            new Pointer(from).read(0, numbers, first, count);
        } else {
            new Pointer(from).read(0, (float[]) to, first, count);
        }
    }

    @Override
    public String string(long address) {
        return new Pointer(address).getString(0, "UTF-8");
    }

    @Override
    public long check() {
        return checkAddress;
    }

    @Override
    public long symbol(String library, String name) {
        try {
            NativeLibrary opened = NativeLibrary.getInstance(library);
            kept.add(opened);
            return Pointer.nativeValue(opened.getGlobalVariableAddress(name));
        } catch (UnsatisfiedLinkError e) {
            return 0;
        }
    }

    @Override
    public long version() {
        return C.tsvd_version();
    }

    @Override
    public int hasBlas() {
        return C.tsvd_has_blas();
    }

    @Override
    public int hostThreads() {
        return C.tsvd_host_threads();
    }

    @Override
    public int cudaDeviceCount(long count, long error) {
        return C.tsvd_cuda_device_count(count, error);
    }

    @Override
    public int cudaLoad(long file, long error) {
        return C.tsvd_cuda_load(file, error);
    }

    @Override
    public void configInit(long config, long size) {
        C.tsvd_config_init(config, size);
    }

    @Override
    public void optionsInit(long options, long size) {
        C.tsvd_options_init(options, size);
    }

    @Override
    public int create(long config, long handle, long error) {
        return C.tsvd_create(config, handle, error);
    }

    @Override
    public void destroy(long handle) {
        C.tsvd_destroy(handle);
    }

    @Override
    public int setThreads(long handle, int threads, long error) {
        return C.tsvd_set_threads(handle, threads, error);
    }

    @Override
    public int trim(long handle, long error) {
        return C.tsvd_trim(handle, error);
    }

    @Override
    public int svd(long handle, long d, long e, long options, long L, long s, long R, long info,
            long error) {
        return C.tsvd_svd(handle, d, e, options, L, s, R, info, error);
    }

    @Override
    public int select(long handle, long d, long e, long options, double low, double high,
            long first, long count, long error) {
        return C.tsvd_select(handle, d, e, options, low, high, first, count, error);
    }

    @Override
    public int denseSvd(long handle, long a, long options, long U, long S, long Vh, long info,
            long error) {
        return C.tsvd_dense_svd(handle, a, options, U, S, Vh, info, error);
    }

    @Override
    public int denseReduce(long handle, long a, long options, long reduction, long error) {
        return C.tsvd_dense_reduce(handle, a, options, reduction, error);
    }

    @Override
    public int reductionSelect(long reduction, double low, double high, long first, long count,
            long error) {
        return C.tsvd_reduction_select(reduction, low, high, first, count, error);
    }

    @Override
    public int reductionSvd(long reduction, long options, long U, long S, long Vh, long info,
            long error) {
        return C.tsvd_reduction_svd(reduction, options, U, S, Vh, info, error);
    }

    @Override
    public void reductionDestroy(long reduction) {
        C.tsvd_reduction_destroy(reduction);
    }

    @Override
    public int denseInverse(long handle, long a, long options, int refine, long X, long info,
            long error) {
        return C.tsvd_dense_inverse(handle, a, options, refine, X, info, error);
    }

    /** The functions of tsvd.h by their names, which JNA finds. */
    private static final class C {
        private C() {
        }

        static native long tsvd_version();

        static native int tsvd_has_blas();

        static native int tsvd_host_threads();

        static native int tsvd_cuda_device_count(long count, long error);

        static native int tsvd_cuda_load(long file, long error);

        static native void tsvd_config_init(long config, long size);

        static native void tsvd_options_init(long options, long size);

        static native int tsvd_create(long config, long handle, long error);

        static native void tsvd_destroy(long handle);

        static native int tsvd_set_threads(long handle, int threads, long error);

        static native int tsvd_trim(long handle, long error);

        static native int tsvd_svd(long handle, long d, long e, long options, long L, long s,
                long R, long info, long error);

        static native int tsvd_select(long handle, long d, long e, long options, double low,
                double high, long first, long count, long error);

        static native int tsvd_dense_svd(long handle, long a, long options, long U, long S, long Vh,
                long info, long error);

        static native int tsvd_dense_reduce(long handle, long a, long options, long reduction,
                long error);

        static native int tsvd_reduction_select(long reduction, double low, double high, long first,
                long count, long error);

        static native int tsvd_reduction_svd(long reduction, long options, long U, long S, long Vh,
                long info, long error);

        static native void tsvd_reduction_destroy(long reduction);

        static native int tsvd_dense_inverse(long handle, long a, long options, int refine, long X,
                long info, long error);
    }
}
