package tsvd.internal;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;

/**
 * The back end through java.lang.foreign. No call is critical: a critical one could pass Java
 * arrays in place, but then the garbage collector may have to wait for it, and it may not call
 * back.
 */
@SuppressWarnings("restricted")
final class ForeignNative extends Native {
    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY = LibraryFile.open(ForeignNative::open);
    /** All of the memory. */
    private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final MethodHandle MALLOC = handle(LINKER.defaultLookup(), "malloc", 'l', "l");
    private static final MethodHandle FREE = handle(LINKER.defaultLookup(), "free", 'v', "l");

    private static SymbolLookup open(Path file) {
        try {
            return SymbolLookup.libraryLookup(file, Arena.global());
        } catch (IllegalArgumentException e) {
            System.load(file.toString()); // this says why
            throw e;
        }
    }

    @Override
    public String name() {
        return "ffm";
    }

    @Override
    public long allocate(long bytes) {
        try {
            return (long) MALLOC.invokeExact(bytes);
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    @Override
    public void free(long address) {
        try {
            FREE.invokeExact(address);
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        return MEMORY.asSlice(address, bytes).asByteBuffer().order(ByteOrder.nativeOrder());
    }

    @Override
    public long address(Buffer direct) {
        return MemorySegment.ofBuffer(direct.duplicate().clear()).address();
    }

    @Override
    public void toNative(Object from, int first, int count, long to) {
        if (from instanceof double[] numbers) {
            MemorySegment.copy(numbers, first, MEMORY, JAVA_DOUBLE, to, count);
        } else {
            MemorySegment.copy((float[]) from, first, MEMORY, JAVA_FLOAT, to, count);
        }
    }

    @Override
    public void fromNative(long from, Object to, int first, int count) {
        if (to instanceof double[] numbers) {
            MemorySegment.copy(MEMORY, JAVA_DOUBLE, from, numbers, first, count);
        } else {
            MemorySegment.copy(MEMORY, JAVA_FLOAT, from, (float[]) to, first, count);
        }
    }

    @Override
    public String string(long address) {
        return MEMORY.getString(address);
    }

    private static final class Upcall {
        static final MemorySegment CHECK = make();

        private static MemorySegment make() {
            try {
                MethodHandle ask = MethodHandles.lookup().findStatic(Check.class, "ask",
                        MethodType.methodType(int.class, long.class, double.class));
                return LINKER.upcallStub(ask,
                        FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_DOUBLE), Arena.global());
            } catch (ReflectiveOperationException e) {
                throw impossible(e);
            }
        }
    }

    @Override
    public long check() {
        return Upcall.CHECK.address();
    }

    @Override
    public long symbol(String library, String name) {
        try {
            return SymbolLookup.libraryLookup(library, Arena.global()).find(name)
                    .map(MemorySegment::address).orElse(0L);
        } catch (IllegalArgumentException e) {
            return 0;
        }
    }

    /** A function with results and arguments v: void, i: int, l: long or a pointer, d: double. */
    private static MethodHandle handle(SymbolLookup where, String name, char result,
            String arguments) {
        MemorySegment function = where.find(name).orElseThrow(() -> new UnsatisfiedLinkError(
                "the library of tsvd has no function " + name + ": it is of another version"));
        MemoryLayout[] layouts =
                arguments.chars().mapToObj(c -> layout((char) c)).toArray(MemoryLayout[]::new);
        return LINKER.downcallHandle(function, result == 'v' ? FunctionDescriptor.ofVoid(layouts)
                : FunctionDescriptor.of(layout(result), layouts));
    }

    private static MemoryLayout layout(char type) {
        return switch (type) {
            case 'i' -> JAVA_INT;
            case 'l' -> JAVA_LONG;
            default -> JAVA_DOUBLE;
        };
    }

    /** What a downcall throws is no failure of the library. */
    private static Error impossible(Throwable t) {
        return t instanceof Error e ? e : new AssertionError(t);
    }

    // ---- functions ----

    private static final MethodHandle VERSION =
            handle(LIBRARY, "tsvd_version", 'l', "");

    @Override
    public long version() {
        try {
            return (long) VERSION.invokeExact();
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle HAS_BLAS =
            handle(LIBRARY, "tsvd_has_blas", 'i', "");

    @Override
    public int hasBlas() {
        try {
            return (int) HAS_BLAS.invokeExact();
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle HOST_THREADS =
            handle(LIBRARY, "tsvd_host_threads", 'i', "");

    @Override
    public int hostThreads() {
        try {
            return (int) HOST_THREADS.invokeExact();
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle CUDA_DEVICE_COUNT =
            handle(LIBRARY, "tsvd_cuda_device_count", 'i', "ll");

    @Override
    public int cudaDeviceCount(long count, long error) {
        try {
            return (int) CUDA_DEVICE_COUNT.invokeExact(count, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle CUDA_LOAD =
            handle(LIBRARY, "tsvd_cuda_load", 'i', "ll");

    @Override
    public int cudaLoad(long file, long error) {
        try {
            return (int) CUDA_LOAD.invokeExact(file, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle CONFIG_INIT =
            handle(LIBRARY, "tsvd_config_init", 'v', "ll");

    @Override
    public void configInit(long config, long size) {
        try {
            CONFIG_INIT.invokeExact(config, size);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle OPTIONS_INIT =
            handle(LIBRARY, "tsvd_options_init", 'v', "ll");

    @Override
    public void optionsInit(long options, long size) {
        try {
            OPTIONS_INIT.invokeExact(options, size);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle CREATE =
            handle(LIBRARY, "tsvd_create", 'i', "lll");

    @Override
    public int create(long config, long handle, long error) {
        try {
            return (int) CREATE.invokeExact(config, handle, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle DESTROY =
            handle(LIBRARY, "tsvd_destroy", 'v', "l");

    @Override
    public void destroy(long handle) {
        try {
            DESTROY.invokeExact(handle);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle SET_THREADS =
            handle(LIBRARY, "tsvd_set_threads", 'i', "lil");

    @Override
    public int setThreads(long handle, int threads, long error) {
        try {
            return (int) SET_THREADS.invokeExact(handle, threads, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle TRIM =
            handle(LIBRARY, "tsvd_trim", 'i', "ll");

    @Override
    public int trim(long handle, long error) {
        try {
            return (int) TRIM.invokeExact(handle, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle SVD =
            handle(LIBRARY, "tsvd_svd", 'i', "lllllllll");

    @Override
    public int svd(long handle, long d, long e, long options, long L, long s, long R, long info,
            long error) {
        try {
            return (int) SVD.invokeExact(handle, d, e, options, L, s, R, info, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle SELECT =
            handle(LIBRARY, "tsvd_select", 'i', "llllddlll");

    @Override
    public int select(long handle, long d, long e, long options, double low, double high,
            long first, long count, long error) {
        try {
            return (int) SELECT.invokeExact(handle, d, e, options, low, high, first, count, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle DENSE_SVD =
            handle(LIBRARY, "tsvd_dense_svd", 'i', "llllllll");

    @Override
    public int denseSvd(long handle, long a, long options, long U, long S, long Vh, long info,
            long error) {
        try {
            return (int) DENSE_SVD.invokeExact(handle, a, options, U, S, Vh, info, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle DENSE_REDUCE =
            handle(LIBRARY, "tsvd_dense_reduce", 'i', "lllll");

    @Override
    public int denseReduce(long handle, long a, long options, long reduction, long error) {
        try {
            return (int) DENSE_REDUCE.invokeExact(handle, a, options, reduction, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle REDUCTION_SELECT =
            handle(LIBRARY, "tsvd_reduction_select", 'i', "lddlll");

    @Override
    public int reductionSelect(long reduction, double low, double high, long first, long count,
            long error) {
        try {
            return (int) REDUCTION_SELECT.invokeExact(reduction, low, high, first, count, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle REDUCTION_SVD =
            handle(LIBRARY, "tsvd_reduction_svd", 'i', "lllllll");

    @Override
    public int reductionSvd(long reduction, long options, long U, long S, long Vh, long info,
            long error) {
        try {
            return (int) REDUCTION_SVD.invokeExact(reduction, options, U, S, Vh, info, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle REDUCTION_DESTROY =
            handle(LIBRARY, "tsvd_reduction_destroy", 'v', "l");

    @Override
    public void reductionDestroy(long reduction) {
        try {
            REDUCTION_DESTROY.invokeExact(reduction);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }

    private static final MethodHandle DENSE_INVERSE =
            handle(LIBRARY, "tsvd_dense_inverse", 'i', "lllilll");

    @Override
    public int denseInverse(long handle, long a, long options, int refine, long X, long info,
            long error) {
        try {
            return (int) DENSE_INVERSE.invokeExact(handle, a, options, refine, X, info, error);
        } catch (Throwable x) {
            throw impossible(x);
        }
    }
}
