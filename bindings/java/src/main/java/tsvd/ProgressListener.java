package tsvd;

/** Told how far a call is; it can stop the call. */
@FunctionalInterface
public interface ProgressListener {
    /**
     * Called now and then by the thread that made the call. What it throws ends the call and comes
     * out of it. It may not use the handle of the call.
     *
     * @param done the share of the work that is done, in [0, 1]; it does not decrease
     * @return true: stop the call, with {@link Status#INTERRUPTED}
     */
    boolean progress(double done);
}
