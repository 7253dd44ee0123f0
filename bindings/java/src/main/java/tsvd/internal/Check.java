package tsvd.internal;

import java.util.function.DoublePredicate;

/**
 * What the library asks of the thread that made a call: whether to stop. One C function serves all
 * calls, and finds the call by the thread.
 */
public final class Check {
    private static final ThreadLocal<Check> CURRENT = new ThreadLocal<>();

    private final DoublePredicate stop;
    private final Check outer;
    private Throwable thrown;

    private Check(DoublePredicate stop, Check outer) {
        this.stop = stop;
        this.outer = outer;
    }

    /**
     * Begins a call of this thread; one made by a listener lies within another.
     *
     * @param stop true: the call stops; null: only an interrupt stops it
     * @return to be ended in any case
     */
    public static Check begin(DoublePredicate stop) {
        Check check = new Check(stop, CURRENT.get());
        CURRENT.set(check);
        return check;
    }

    /** Ends the call. */
    public void end() {
        if (outer == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(outer);
        }
    }

    /** Throws what the listener has thrown, if it has. */
    public void rethrow() {
        if (thrown != null) {
            throw Check.<RuntimeException>unchecked(thrown);
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable t) throws T {
        throw (T) t;
    }

    /**
     * The C function. Nothing may be thrown into C.
     *
     * @param argument not used
     * @param done the share of the work
     * @return 1: stop
     */
    static int ask(long argument, double done) {
        Check check = CURRENT.get();
        try {
            if (check == null) {
                return 0;
            }
            if (check.stop != null && check.stop.test(done)) {
                return 1;
            }
            return Thread.currentThread().isInterrupted() ? 1 : 0;
        } catch (Throwable t) {
            check.thrown = t;
            return 1;
        }
    }
}
