package tsvd;

/** What went wrong. The constants stand in the order of the C library's {@code tsvd_status}. */
public enum Status {
    /** Nothing; no exception has it. */
    OK,
    /** An argument is outside its documented range, or shapes do not fit together. */
    ARGUMENT,
    /** The input holds NaN or infinity. */
    NONFINITE,
    /** Memory of the host or of the device is exhausted. */
    MEMORY,
    /** The bound on sweeps was reached. */
    NO_CONVERGENCE,
    /** The progress listener asked to stop, or the thread was interrupted. */
    INTERRUPTED,
    /** The device cannot be used. */
    NO_DEVICE,
    /** The device does not offer the method. */
    UNSUPPORTED,
    /** A CUDA call failed. */
    CUDA,
    /** A library that the work needs was not found, such as a BLAS. */
    LIBRARY,
    /** A matrix has no inverse. */
    SINGULAR,
    /** A status that a later version of the library has. */
    OTHER;

    private static final Status[] ALL = values();

    static Status of(int number) {
        return number >= 0 && number < OTHER.ordinal() ? ALL[number] : OTHER;
    }
}
