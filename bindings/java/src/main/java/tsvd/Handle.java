package tsvd;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import tsvd.internal.Blas;
import tsvd.internal.Check;
import tsvd.internal.Native;

/**
 * A device, and what calls on it share: cached memory, threads, a BLAS. {@link Svd#of} and
 * {@link Inverse#of} have handles of their own; open one to decide how long its memory is kept.
 *
 * <p>Any thread may use it. Calls at the same time come one after the other; for work side by side
 * give each thread a handle. {@link #close} waits for the call under way. A listener may not use
 * the handle of its call.
 */
public final class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    /** What ends with the handle. It must not refer to it. */
    private static final class State implements Runnable {
        final Native api = Native.get();
        final Frame frame = new Frame(api);
        long handle;

        @Override
        public void run() {
            api.destroy(handle);
            frame.free();
        }
    }

    private final State state;
    private final Cleaner.Cleanable cleanable;
    private final Device device;
    private final int ownThreads;
    private final ReentrantLock lock = new ReentrantLock();
    private int threads;
    private boolean busy;
    private boolean closed;

    private Handle(Device device, int threads) {
        this.device = Objects.requireNonNull(device, "device");
        this.ownThreads = threads;
        this.threads = threads;
        long blas = Blas.address();
        state = new State();
        try {
            Frame frame = state.frame;
            frame.putConfig(device.number(), threads, blas);
            frame.check(state.api.create(frame.config(), frame.out(0), frame.error()));
            state.handle = frame.outValue(0);
        } catch (RuntimeException | Error e) {
            state.frame.free();
            throw e;
        }
        cleanable = CLEANER.register(this, state);
    }

    /**
     * Opens a handle of the CPU.
     *
     * @return to be closed
     */
    public static Handle open() {
        return open(Device.CPU, 0);
    }

    /**
     * Opens a handle.
     *
     * @param device where it computes
     * @param threads host threads of its calls; 0: as many as OpenMP uses
     * @return to be closed
     * @throws TsvdException {@link Status#NO_DEVICE} if the device cannot be used
     */
    public static Handle open(Device device, int threads) {
        return new Handle(device, threads);
    }

    /**
     * The device.
     *
     * @return never null
     */
    public Device device() {
        return device;
    }

    /** Ends the handle and gives back its memory, after the call under way. May be called again. */
    @Override
    public void close() {
        lock.lock();
        try {
            if (busy) {
                throw new IllegalStateException("a listener may not close the handle of its call");
            }
            closed = true;
            cleanable.clean();
        } finally {
            lock.unlock();
        }
    }

    /** Gives cached memory back to the system. */
    public void trim() {
        alone(Options.DEFAULT, () -> {
            state.frame.check(state.api.trim(state.handle, state.frame.error()));
            return null;
        });
    }

    /**
     * The SVD of every matrix of a batch; see {@link Svd#of(NDArray, NDArray, Options)}.
     *
     * @param d the diagonals, (batch..., n)
     * @param e the diagonals beside them, (batch..., n-1) or (batch..., n)
     * @param options what is wanted, on this handle's device
     * @return in new Java arrays
     */
    public Svd svd(NDArray d, NDArray e, Options options) {
        return alone(options, () -> bidiagonal(d, e, null, options));
    }

    /**
     * The same into arrays of the caller's; see
     * {@link Svd#into(NDArray, NDArray, NDArray, NDArray, NDArray, Options)}.
     *
     * @param d the diagonals, (batch..., n)
     * @param e the diagonals beside them, (batch..., n-1) or (batch..., n)
     * @param u out, (batch..., rows, k), or null as vh is: values alone
     * @param s out, (batch..., k)
     * @param vh out, (batch..., k, columns), or null
     * @param options what is wanted, on this handle's device
     * @return what was done
     */
    public Info svdInto(NDArray d, NDArray e, NDArray u, NDArray s, NDArray vh, Options options) {
        return alone(options, () -> bidiagonal(d, e, new Svd(u, s, vh, null), options)).info();
    }

    /**
     * The SVD of every matrix of a batch; see {@link Svd#of(NDArray, Options)}.
     *
     * @param a (batch..., m, n)
     * @param options what is wanted, on this handle's device
     * @return in new Java arrays
     */
    public Svd svd(NDArray a, Options options) {
        return alone(options, () -> dense(a, null, options));
    }

    /**
     * The same into arrays of the caller's; see
     * {@link Svd#into(NDArray, NDArray, NDArray, NDArray, Options)}.
     *
     * @param a (batch..., m, n)
     * @param u out, (batch..., m, k), or null as vh is: values alone
     * @param s out, (batch..., k)
     * @param vh out, (batch..., k, n), or null
     * @param options what is wanted, on this handle's device
     * @return what was done
     */
    public Info svdInto(NDArray a, NDArray u, NDArray s, NDArray vh, Options options) {
        return alone(options, () -> dense(a, new Svd(u, s, vh, null), options)).info();
    }

    /**
     * The inverse of every matrix of a batch; see {@link Inverse#of(NDArray, Options)}.
     *
     * @param a (batch..., n, n)
     * @param options refine, checkFinite, threads and progress are read
     * @return in new Java arrays
     */
    public Inverse inverse(NDArray a, Options options) {
        return inverseInto(a, Shapes.inverse(a), options);
    }

    /**
     * The same into an array of the caller's.
     *
     * @param a (batch..., n, n)
     * @param x out, of the shape of a
     * @param options refine, checkFinite, threads and progress are read
     * @return x, and what is known of it
     */
    public Inverse inverseInto(NDArray a, NDArray x, Options options) {
        return alone(options, () -> {
            Frame f = state.frame;
            run(options, 0, -1, 1, o -> state.api.denseInverse(state.handle, f.array(0), o,
                    options.refine ? 1 : 0, f.array(1), f.inverseInfo(), f.error()), a, x);
            return f.readInverse(x);
        });
    }

    // ---- calls ----

    /** into: null: the results are new. */
    private Svd bidiagonal(NDArray d, NDArray e, Svd into, Options o) {
        Frame f = state.frame;
        long first = o.first;
        long count = o.count;
        if (o.byInterval()) {
            run(o, 0, -1, 2, options -> state.api.select(state.handle, f.array(0), f.array(1),
                    options, o.low, o.high, f.out(0), f.out(1), f.error()), d, e);
            first = f.outValue(0);
            count = f.outValue(1);
        }
        Svd r = into != null ? into : Shapes.bidiagonal(d, e, o, first, count);
        run(o, first, count, 2,
                options -> state.api.svd(state.handle, f.array(0), f.array(1), options,
                        addressOf(2, r.u()), addressOf(3, r.s()), addressOf(4, r.vh()), f.info(),
                        f.error()),
                d, e, r.u(), r.s(), r.vh());
        return new Svd(r.u(), r.s(), r.vh(), f.readInfo());
    }

    private Svd dense(NDArray a, Svd into, Options o) {
        if (o.byInterval()) {
            return denseInterval(a, into, o);
        }
        Frame f = state.frame;
        Svd r = into != null ? into : Shapes.dense(a, o, o.first, o.count);
        run(o, o.first, o.count, 1,
                options -> state.api.denseSvd(state.handle, f.array(0), options,
                        addressOf(1, r.u()), addressOf(2, r.s()), addressOf(3, r.vh()), f.info(),
                        f.error()),
                a, r.u(), r.s(), r.vh());
        return new Svd(r.u(), r.s(), r.vh(), f.readInfo());
    }

    /** Which values lie in the interval shows once the matrix is bidiagonal. */
    private Svd denseInterval(NDArray a, Svd into, Options o) {
        Frame f = state.frame;
        run(o, 0, -1, 1, options -> state.api.denseReduce(state.handle, f.array(0), options,
                f.out(0), f.error()), a);
        long reduction = f.outValue(0);
        try {
            f.check(state.api.reductionSelect(reduction, o.low, o.high, f.out(0), f.out(1),
                    f.error()));
            long first = f.outValue(0);
            long count = f.outValue(1);
            Svd r = into != null ? into : Shapes.dense(a, o, first, count);
            run(o, first, count, 0,
                    options -> state.api.reductionSvd(reduction, options, addressOf(0, r.u()),
                            addressOf(1, r.s()), addressOf(2, r.vh()), f.info(), f.error()),
                    r.u(), r.s(), r.vh());
            return new Svd(r.u(), r.s(), r.vh(), f.readInfo());
        } finally {
            state.api.reductionDestroy(reduction);
        }
    }

    private long addressOf(int i, NDArray array) {
        return array == null ? 0 : state.frame.array(i);
    }

    /** Does what must not be done by two threads at once, nor within a call. */
    private <T> T alone(Options o, Supplier<T> work) {
        lock.lock();
        try {
            if (busy) {
                throw new IllegalStateException("a listener may not use the handle of its call");
            }
            if (closed) {
                throw new IllegalStateException("the handle is closed");
            }
            if (o.device != null && !o.device.equals(device)) {
                throw new IllegalArgumentException(
                        "the options ask for " + o.device + ", and the handle is of " + device);
            }
            busy = true;
            try {
                setThreads(o.threads != 0 ? o.threads : ownThreads);
                return work.get();
            } finally {
                busy = false;
            }
        } finally {
            lock.unlock();
            Reference.reachabilityFence(this);
        }
    }

    private void setThreads(int wanted) {
        if (wanted != threads) {
            Frame f = state.frame;
            f.check(state.api.setThreads(state.handle, wanted, f.error()));
            threads = wanted;
        }
    }

    /** A function of the library that gets options. */
    @FunctionalInterface
    private interface Function {
        int call(long options);
    }

    /** Calls a function with arrays, of which the first are inputs and the others results. */
    private void run(Options o, long first, long count, int inputs, Function function,
            NDArray... arrays) {
        Frame f = state.frame;
        try {
            f.place(inputs, arrays);
            f.putOptions(o, first, count);
            Check check = Frame.begin(o.progress);
            int status;
            try {
                status = function.call(f.options());
            } finally {
                check.end();
            }
            check.rethrow();
            f.check(status);
            f.deliver(inputs, arrays);
        } finally {
            f.release();
            Reference.reachabilityFence(arrays);
        }
    }
}
