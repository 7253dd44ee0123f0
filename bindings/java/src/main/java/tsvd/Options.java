package tsvd;

import java.util.Objects;

/**
 * What to compute and how. Immutable, and for any number of calls and threads.
 *
 * <pre>{@code
 * Options options = Options.builder().method(Method.DC).range(0, 10).build();
 * }</pre>
 */
public final class Options {
    /** The default of every option. */
    public static final Options DEFAULT = builder().build();

    final Device device;
    final int threads;
    final Vectors vectors;
    final Method method;
    final boolean lower;
    final long first;
    final long count;
    final double low;
    final double high;
    final double eps;
    final long maxSweeps;
    final boolean checkFinite;
    final long givensBlocks;
    final long givensThreads;
    final boolean givensSplit;
    final boolean fallback;
    final int denseStages;
    final boolean refine;
    final ProgressListener progress;

    private Options(Builder b) {
        device = b.device;
        threads = b.threads;
        vectors = b.vectors;
        method = b.method;
        lower = b.lower;
        first = b.first;
        count = b.count;
        low = b.low;
        high = b.high;
        eps = b.eps;
        maxSweeps = b.maxSweeps;
        checkFinite = b.checkFinite;
        givensBlocks = b.givensBlocks;
        givensThreads = b.givensThreads;
        givensSplit = b.givensSplit;
        fallback = b.fallback;
        denseStages = b.denseStages;
        refine = b.refine;
        progress = b.progress;
    }

    /**
     * A builder in which every option has its default.
     *
     * @return a new one
     */
    public static Builder builder() {
        return new Builder();
    }

    /** Whether the values in an interval are wanted; then first and count are not used. */
    boolean byInterval() {
        return low != Double.NEGATIVE_INFINITY || high != Double.POSITIVE_INFINITY;
    }

    /** Sets options, one after the other. Numbers are checked by the library at the call. */
    public static final class Builder {
        private Device device;
        private int threads;
        private Vectors vectors = Vectors.THIN;
        private Method method = Method.AUTO;
        private boolean lower;
        private long first;
        private long count = -1;
        private double low = Double.NEGATIVE_INFINITY;
        private double high = Double.POSITIVE_INFINITY;
        private double eps = -1;
        private long maxSweeps;
        private boolean checkFinite = true;
        private long givensBlocks;
        private long givensThreads;
        private boolean givensSplit = true;
        private boolean fallback = true;
        private int denseStages;
        private boolean refine;
        private ProgressListener progress;

        private Builder() {
        }

        /**
         * Makes the options. The builder may be used on.
         *
         * @return what was set, with the defaults of the rest
         */
        public Options build() {
            return new Options(this);
        }

        /**
         * Where to compute.
         *
         * @param device the default is the CPU, or for a call of a {@link Handle} its device; any
         *     other is refused there
         * @return this
         */
        public Builder device(Device device) {
            this.device = Objects.requireNonNull(device, "device");
            return this;
        }

        /**
         * The host threads of the call.
         *
         * @param threads 0, the default: as many as OpenMP uses, or as the {@link Handle} was
         *     opened with
         * @return this
         */
        public Builder threads(int threads) {
            this.threads = threads;
            return this;
        }

        /**
         * Which vectors are wanted.
         *
         * @param vectors the default is {@link Vectors#THIN}
         * @return this
         */
        public Builder vectors(Vectors vectors) {
            this.vectors = Objects.requireNonNull(vectors, "vectors");
            return this;
        }

        /**
         * The method.
         *
         * @param method the default is {@link Method#AUTO}
         * @return this
         */
        public Builder method(Method method) {
            this.method = Objects.requireNonNull(method, "method");
            return this;
        }

        /**
         * Where e lies.
         *
         * @param lower true: below the diagonal; false, the default: above it. Bidiagonal matrices
         *     only
         * @return this
         */
        public Builder lower(boolean lower) {
            this.lower = lower;
            return this;
        }

        /**
         * The values first .. first + count - 1 alone, in descending order.
         *
         * @param first the index of the first one, 0: the largest value
         * @param count how many; -1: all the rest
         * @return this
         */
        public Builder range(long first, long count) {
            this.first = first;
            this.count = count;
            return this;
        }

        /**
         * The values in (low, high] alone, of a single matrix.
         *
         * @param low the lower bound, in the units of the matrix; may be infinite
         * @param high the upper bound, above low; may be infinite
         * @return this
         */
        public Builder interval(double low, double high) {
            this.low = low;
            this.high = high;
            return this;
        }

        /**
         * The size up to which entries count as zero.
         *
         * @param eps in the units of the matrix; negative, the default: full accuracy
         * @return this
         */
        public Builder eps(double eps) {
            this.eps = eps;
            return this;
        }

        /**
         * The bound on sweeps, of qr, jacobi and givens.
         *
         * @param maxSweeps 0, the default: the method's own
         * @return this
         */
        public Builder maxSweeps(long maxSweeps) {
            this.maxSweeps = maxSweeps;
            return this;
        }

        /**
         * What becomes of NaN and infinity in the input.
         *
         * @param checkFinite true, the default: {@link Status#NONFINITE}; false: results of NaN
         * @return this
         */
        public Builder checkFinite(boolean checkFinite) {
            this.checkFinite = checkFinite;
            return this;
        }

        /**
         * The pipeline of method givens.
         *
         * @param blocks that the matrix is cut into; 0, the default: chosen
         * @param threads half sweeps that run at once; 0, the default: n / 2
         * @param split true, the default: the matrix is split where it falls apart
         * @return this
         */
        public Builder givens(long blocks, long threads, boolean split) {
            this.givensBlocks = blocks;
            this.givensThreads = threads;
            this.givensSplit = split;
            return this;
        }

        /**
         * What becomes of matrices that method twisted refuses.
         *
         * @param fallback true, the default: dc takes them; false: {@link Status#NO_CONVERGENCE}
         * @return this
         */
        public Builder fallback(boolean fallback) {
            this.fallback = fallback;
            return this;
        }

        /**
         * The stages of the reduction of dense matrices.
         *
         * @param stages 1: directly to bidiagonal form; 2: through a band; 0, the default: chosen
         * @return this
         */
        public Builder denseStages(int stages) {
            this.denseStages = stages;
            return this;
        }

        /**
         * Whether an inverse gets a step of Newton's iteration.
         *
         * @param refine false, the default: it does not
         * @return this
         */
        public Builder refine(boolean refine) {
            this.refine = refine;
            return this;
        }

        /**
         * Who is told how far the call is, and may stop it.
         *
         * @param listener null, the default: nobody. An interrupt of the thread stops the call in
         *     any case
         * @return this
         */
        public Builder progress(ProgressListener listener) {
            this.progress = listener;
            return this;
        }
    }
}
