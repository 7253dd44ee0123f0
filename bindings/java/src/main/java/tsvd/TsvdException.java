package tsvd;

/**
 * What the library reports. The message is the library's sentence, and after a semicolon what
 * helps, in the words of the C header. The handle can be used after an exception.
 */
public final class TsvdException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What failed. */
    private final Status status;
    /** See {@link #text()}. */
    private final String text;
    /** See {@link #advice()}. */
    private final String advice;
    /** See {@link #matrix()}. */
    private final long matrix;
    /** See {@link #device()}. */
    private final int device;
    /** See {@link #sweeps()}. */
    private final long sweeps;
    /** See {@link #wanted()}. */
    private final long wanted;
    /** See {@link #available()}. */
    private final long available;

    TsvdException(Status status, String text, String advice, long matrix, int device, long sweeps,
            long wanted, long available) {
        super(advice.isEmpty() ? text : text + "; " + advice);
        this.status = status;
        this.text = text;
        this.advice = advice;
        this.matrix = matrix;
        this.device = device;
        this.sweeps = sweeps;
        this.wanted = wanted;
        this.available = available;
    }

    TsvdException(Status status, String text) {
        this(status, text, "", -1, Device.CPU.number(), 0, 0, 0);
    }

    /**
     * The class of the error.
     *
     * @return never {@link Status#OK}
     */
    public Status status() {
        return status;
    }

    /**
     * What happened, without what helps.
     *
     * @return one sentence without a full stop
     */
    public String text() {
        return text;
    }

    /**
     * What helps, in the words of the C header.
     *
     * @return a sentence, may be empty
     */
    public String advice() {
        return advice;
    }

    /**
     * Which matrix of the batch failed.
     *
     * @return its index in C order; -1: no matrix failed
     */
    public long matrix() {
        return matrix;
    }

    /**
     * Which CUDA device failed, or had no memory.
     *
     * @return its number; -1: none
     */
    public int device() {
        return device;
    }

    /**
     * The sweeps made by a method that did not converge.
     *
     * @return their number, 0 for other errors
     */
    public long sweeps() {
        return sweeps;
    }

    /**
     * The bytes asked for where memory was exhausted.
     *
     * @return bytes; 0: unknown
     */
    public long wanted() {
        return wanted;
    }

    /**
     * The bytes that were free where memory was exhausted.
     *
     * @return bytes; 0: unknown
     */
    public long available() {
        return available;
    }
}
