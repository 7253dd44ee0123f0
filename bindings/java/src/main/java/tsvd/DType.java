package tsvd;

/** The type of an array's entries. */
public enum DType {
    /** Java's double. */
    FLOAT64(8, 1),
    /** Java's float. */
    FLOAT32(4, 1),
    /** A real part and then an imaginary part, both double. Dense matrices only. */
    COMPLEX128(8, 2),
    /** A real part and then an imaginary part, both float. Dense matrices only. */
    COMPLEX64(4, 2);

    /** Bytes of a real number, or of a part of a complex one. */
    final int realBytes;
    /** Real numbers in an entry: 1, or 2 of a complex one. */
    final int parts;

    DType(int realBytes, int parts) {
        this.realBytes = realBytes;
        this.parts = parts;
    }

    /** The number of {@code tsvd_dtype}. */
    int number() {
        return ordinal() + 1;
    }

    /**
     * Bytes of an entry.
     *
     * @return 16, 8 or 4
     */
    public int bytes() {
        return realBytes * parts;
    }

    /**
     * The type of the values of matrices with entries of this type.
     *
     * @return {@link #FLOAT64} or {@link #FLOAT32}
     */
    public DType ofValues() {
        return realBytes == 8 ? FLOAT64 : FLOAT32;
    }

    static DType of(int realBytes, boolean complex) {
        return realBytes == 8 ? (complex ? COMPLEX128 : FLOAT64) : (complex ? COMPLEX64 : FLOAT32);
    }
}
