package tsvd;

/** Which singular vectors are wanted. */
public enum Vectors {
    /** Values alone. */
    NONE,
    /** A left and a right vector for each value; the default. */
    THIN,
    /**
     * Whole bases: U of a dense matrix is m x m and Vh n x n. A bidiagonal matrix with an extra
     * column or row has its null vector as the last row of Vh or the last column of U.
     */
    FULL
}
