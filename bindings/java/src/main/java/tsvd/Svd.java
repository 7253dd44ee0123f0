package tsvd;

/**
 * A singular value decomposition U diag(s) Vh of a matrix, or of each matrix of a batch.
 *
 * <p>A dense matrix A is (m, n). A bidiagonal matrix B is given by its diagonal d (n) and the
 * diagonal e (n-1) above it, B = diag(d) + diag(e, 1), or with {@link Options.Builder#lower} below
 * it. With n entries of e it has a column more than rows, n x (n+1), or if it is lower a row more
 * than columns.
 *
 * <p>Values are in descending order and not negative. The entry of largest magnitude in each column
 * of U is positive. Residual and orthogonality are small multiples of n u. The values of bidiagonal
 * matrices have relative errors of a few u, however small they are; those of dense ones have errors
 * of a small multiple of n u relative to the largest.
 *
 * <p>Any thread may call these functions at any time: each call has a handle of its own. An
 * interrupt of the thread ends its call with {@link Status#INTERRUPTED}; the thread stays
 * interrupted.
 *
 * @param u (batch..., rows, k); null if values alone are wanted
 * @param s (batch..., k), double also of complex128, float also of complex64
 * @param vh (batch..., k, columns); null if values alone are wanted
 * @param info what was done
 */
public record Svd(NDArray u, NDArray s, NDArray vh, Info info) {
    private static final Options VALUES = Options.builder().vectors(Vectors.NONE).build();

    /**
     * The SVD of an upper bidiagonal matrix.
     *
     * @param d the diagonal, n entries
     * @param e the diagonal above it, n-1 entries, or n
     * @return U, s and Vh in new arrays of double
     * @throws TsvdException what the library reports
     */
    public static Svd of(double[] d, double[] e) {
        return of(d, e, Options.DEFAULT);
    }

    /**
     * The SVD of a bidiagonal matrix, or a part of it.
     *
     * @param d the diagonal, n entries
     * @param e the diagonal beside it, n-1 entries, or n
     * @param options what is wanted
     * @return in new arrays of double
     * @throws TsvdException what the library reports
     */
    public static Svd of(double[] d, double[] e, Options options) {
        return of(NDArray.of(d), NDArray.of(e), options);
    }

    /**
     * The SVD of a bidiagonal matrix in single precision.
     *
     * @param d the diagonal, n entries
     * @param e the diagonal beside it, n-1 entries, or n
     * @param options what is wanted
     * @return in new arrays of float
     * @throws TsvdException what the library reports
     */
    public static Svd of(float[] d, float[] e, Options options) {
        return of(NDArray.of(d), NDArray.of(e), options);
    }

    /**
     * The SVD of every bidiagonal matrix of a batch.
     *
     * @param d (batch..., n), of float64 or float32, with any strides
     * @param e (batch..., n-1) or (batch..., n), of the type of d; the batch dimensions broadcast
     * @param options what is wanted
     * @return u (batch..., rows, k), s (batch..., k), vh (batch..., k, columns) in new Java arrays
     * @throws TsvdException what the library reports
     */
    public static Svd of(NDArray d, NDArray e, Options options) {
        return Pool.with(options, handle -> handle.svd(d, e, options));
    }

    /**
     * The SVD of bidiagonal matrices into arrays of the caller's. Those in direct buffers and
     * native segments are written in place.
     *
     * @param d (batch..., n), of float64 or float32, with any strides
     * @param e (batch..., n-1) or (batch..., n), of the type of d; the batch dimensions broadcast
     * @param u out, (batch..., rows, k), or null as vh is: values alone, whatever the options say.
     *     With all values (n+1) x n matrices may have n+1 columns of it, the last is the null
     *     vector
     * @param s out, (batch..., k)
     * @param vh out, (batch..., k, columns), or null; n+1 rows of n x (n+1) matrices are possible
     * @param options what is wanted
     * @return what was done
     * @throws TsvdException what the library reports; then the results are unspecified
     */
    public static Info into(NDArray d, NDArray e, NDArray u, NDArray s, NDArray vh,
            Options options) {
        return Pool.with(options, handle -> handle.svdInto(d, e, u, s, vh, options));
    }

    /**
     * The SVD of a dense matrix.
     *
     * @param rows m of n entries
     * @return U (m, k), s (k), Vh (k, n) in new arrays of double, k the smaller of m and n
     * @throws TsvdException what the library reports
     */
    public static Svd of(double[][] rows) {
        return of(NDArray.of(rows), Options.DEFAULT);
    }

    /**
     * The SVD of a dense matrix, or a part of it.
     *
     * @param rows m of n entries
     * @param options what is wanted
     * @return in new arrays of double
     * @throws TsvdException what the library reports
     */
    public static Svd of(double[][] rows, Options options) {
        return of(NDArray.of(rows), options);
    }

    /**
     * The SVD of a dense matrix in single precision.
     *
     * @param rows m of n entries
     * @param options what is wanted
     * @return in new arrays of float
     * @throws TsvdException what the library reports
     */
    public static Svd of(float[][] rows, Options options) {
        return of(NDArray.of(rows), options);
    }

    /**
     * The SVD of every dense matrix of a batch.
     *
     * @param a (batch..., m, n), of any type, with any strides
     * @param options what is wanted; lower must be false
     * @return u (batch..., m, k), s (batch..., k), vh (batch..., k, n) in new Java arrays
     * @throws TsvdException what the library reports; {@link Status#LIBRARY} on a CPU without a
     *     BLAS
     */
    public static Svd of(NDArray a, Options options) {
        return Pool.with(options, handle -> handle.svd(a, options));
    }

    /**
     * The SVD of dense matrices into arrays of the caller's. Those in direct buffers and native
     * segments are written in place.
     *
     * @param a (batch..., m, n), of any type, with any strides
     * @param u out, (batch..., m, k), or null as vh is: values alone, whatever the options say.
     *     With all values m columns are possible
     * @param s out, (batch..., k)
     * @param vh out, (batch..., k, n), or null; with all values n rows are possible
     * @param options what is wanted; lower must be false
     * @return what was done
     * @throws TsvdException what the library reports; then the results are unspecified
     */
    public static Info into(NDArray a, NDArray u, NDArray s, NDArray vh, Options options) {
        return Pool.with(options, handle -> handle.svdInto(a, u, s, vh, options));
    }

    /**
     * The values of an upper bidiagonal matrix.
     *
     * @param d the diagonal, n entries
     * @param e the diagonal above it, n-1 entries, or n
     * @return n values
     * @throws TsvdException what the library reports
     */
    public static double[] values(double[] d, double[] e) {
        return of(d, e, VALUES).s().doubles();
    }

    /**
     * The values of a dense matrix.
     *
     * @param rows m of n entries
     * @return as many values as the smaller of m and n
     * @throws TsvdException what the library reports
     */
    public static double[] values(double[][] rows) {
        return of(rows, VALUES).s().doubles();
    }
}
