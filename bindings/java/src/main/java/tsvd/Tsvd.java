package tsvd;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import tsvd.internal.Blas;
import tsvd.internal.Native;
import tsvd.internal.Structs;

/** The library and the machine. */
public final class Tsvd {
    private Tsvd() {
    }

    /**
     * The version of the C library.
     *
     * @return such as "0.1.0"
     */
    public static String version() {
        Native api = Native.get();
        return api.string(api.version());
    }

    /**
     * How Java calls the C library.
     *
     * @return "ffm", by java.lang.foreign, or "jna"
     */
    public static String backEnd() {
        return Native.get().name();
    }

    /**
     * Whether the CPU has a BLAS: the one that the library is linked with, or one that was found.
     * Without it dense matrices end with {@link Status#LIBRARY}.
     *
     * @return true: it has one
     */
    public static boolean hasBlas() {
        return Native.get().hasBlas() != 0 || Blas.address() != 0;
    }

    /**
     * The threads that a call on the CPU uses at most, unless it is told how many.
     *
     * @return 1 or more
     */
    public static int threads() {
        return Native.get().hostThreads();
    }

    /**
     * The CUDA devices that the library shows.
     *
     * @return their number; 0 also where the library was built without CUDA
     */
    public static int cudaDevices() {
        Native api = Native.get();
        long memory = Frame.allocate(api, Long.BYTES);
        try {
            ByteBuffer count = api.view(memory, Long.BYTES);
            return api.cudaDeviceCount(memory, 0) == 0 ? count.getInt(0) : 0;
        } finally {
            api.free(memory);
        }
    }

    /**
     * Opens the library with the CUDA back end for a libtsvd that was built without CUDA. It stays
     * open until the process ends.
     *
     * @param file its path, such as that of libtsvd_cuda13.so
     * @throws TsvdException {@link Status#LIBRARY} if it cannot be opened
     */
    public static void loadCuda(String file) {
        Native api = Native.get();
        byte[] path = file.getBytes(StandardCharsets.UTF_8);
        long memory = Frame.allocate(api, Structs.ERROR.size() + path.length + 1L);
        try {
            long text = memory + Structs.ERROR.size();
            api.view(text, path.length + 1).put(path).put((byte) 0);
            Frame.check(api, api.cudaLoad(text, memory), memory);
        } finally {
            api.free(memory);
        }
    }
}
