package tsvd.internal;

import java.util.List;

/** The structures of tsvd.h that calls pass. */
public final class Structs {
    private Structs() {
    }

    /** {@code TSVD_MAX_DIMS}. */
    public static final int MAX_DIMS = 34;

    /** What failed. */
    public static final Layout ERROR = new Layout("tsvd_error").ints("status").longs("matrix")
            .ints("device").longs("sweeps", "wanted", "available").array("text", 1, 1024)
            .array("advice", 1, 256).array("reserved", 8, 8);

    /** Where the numbers of an array lie. */
    public static final Layout ARRAY = new Layout("tsvd_array").longs("data")
            .ints("space", "dtype", "ndim").array("shape", 8, MAX_DIMS)
            .array("strides", 8, MAX_DIMS);

    /** Products of matrices of a BLAS. */
    public static final Layout BLAS = new Layout("tsvd_blas").longs("size", "dgemm32", "sgemm32",
            "dgemm64", "sgemm64", "dgetrf32", "sgetrf32", "dgetrf64", "sgetrf64", "dgetri32",
            "sgetri32", "dgetri64", "sgetri64", "zgemm32", "cgemm32", "zgemm64", "cgemm64");

    /** What a handle is made of. */
    public static final Layout CONFIG = new Layout("tsvd_config").longs("size")
            .ints("device", "threads").longs("stream", "blas", "host_allocator",
                    "device_allocator", "library_paths", "library_path_count");

    /** What to compute and how. */
    public static final Layout OPTIONS = new Layout("tsvd_options").longs("size")
            .ints("method", "lower").longs("first", "count", "eps", "max_sweeps")
            .ints("check_finite").longs("givens_blocks", "givens_threads")
            .ints("givens_split", "fallback", "dense_stages").longs("check", "check_arg");

    /** What was done. */
    public static final Layout INFO = new Layout("tsvd_info").longs("size").ints("method")
            .longs("sweeps", "iterations", "iterations_saved", "rotations", "deflated", "refused",
                    "seconds_iterate", "seconds_vectors", "seconds_values", "seconds_device",
                    "seconds_reduce", "seconds_band", "seconds_chase", "seconds_back",
                    "seconds_total");

    /** What is known of inverses. */
    public static final Layout INVERSE_INFO = new Layout("tsvd_inverse_info")
            .longs("size", "rcond", "matrix", "seconds_total");

    /** All of them. */
    public static final List<Layout> ALL =
            List.of(ERROR, ARRAY, BLAS, CONFIG, OPTIONS, INFO, INVERSE_INFO);
}
