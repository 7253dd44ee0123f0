package tsvd;

/** How the values and vectors are found. The constants stand in the order of the C library's. */
public enum Method {
    /** The fastest method that meets the accuracy bounds; the default. */
    AUTO,
    /** Divide and conquer. */
    DC,
    /** Implicit-shift QR. */
    QR,
    /** Pipelined zero-shift Givens sweeps. */
    GIVENS,
    /** Bisection by Sturm counts; values only. */
    BISECT,
    /** Twisted factorisations, each vector by itself. */
    TWISTED,
    /** One-sided Jacobi; dense matrices only. */
    JACOBI;

    private static final Method[] ALL = values();

    static Method of(int number) {
        return number >= 0 && number < ALL.length ? ALL[number] : AUTO;
    }
}
