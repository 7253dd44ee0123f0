package tsvd;

/**
 * The inverse X of a dense matrix A, A X = I, or the inverses of a batch.
 *
 * @param x of the shape and the type of a
 * @param rcond the smallest reciprocal condition, 1 / (|A|_1 |X|_1), to six digits; NaN if no
 *     matrix is finite
 * @param matrix the index of the matrix that has it, in C order; -1: there is no entry
 * @param seconds of the whole call within the library
 */
public record Inverse(NDArray x, double rcond, long matrix, double seconds) {
    /**
     * The inverse of a matrix on the CPU.
     *
     * @param rows n of n entries
     * @return X, as new
     * @throws TsvdException {@link Status#SINGULAR} if a pivot is zero
     */
    public static Inverse of(double[][] rows) {
        return of(NDArray.of(rows), Options.DEFAULT);
    }

    /**
     * The inverse of every matrix of a batch.
     *
     * <p>The smaller of A X - I and X A - I is a small multiple of n u |A| |X|, where u is 2^-53 or
     * 2^-24. It takes 2 n^3 multiplications and additions for each, and the memory of the results.
     *
     * @param a (batch..., n, n), of any type, with any strides
     * @param options device, threads, refine, checkFinite and progress are read
     * @return in new Java arrays
     * @throws TsvdException {@link Status#SINGULAR} with the index of the first matrix of which a
     *     pivot is zero; {@link Status#LIBRARY} on a CPU without a BLAS
     */
    public static Inverse of(NDArray a, Options options) {
        return Pool.with(options, handle -> handle.inverse(a, options));
    }
}
