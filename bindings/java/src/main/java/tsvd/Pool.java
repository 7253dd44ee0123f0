package tsvd;

import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * Handles of calls that are given none. A call takes one and gives it back, so that the next call
 * uses what it caches. Calls at the same time have handles of their own.
 */
final class Pool {
    /** Most idle handles of a device. */
    private static final int IDLE_MOST = 16;
    private static final Map<Device, Pool> POOLS = new ConcurrentHashMap<>();

    private final Deque<Handle> idle = new ConcurrentLinkedDeque<>();
    private final AtomicInteger count = new AtomicInteger();

    static <T> T with(Options o, Function<Handle, T> call) {
        Device device = o.device != null ? o.device : Device.CPU;
        Pool pool = POOLS.get(device);
        if (pool == null) {
            pool = POOLS.computeIfAbsent(device, key -> new Pool());
        }
        Handle handle = pool.idle.pollFirst();
        if (handle == null) {
            handle = Handle.open(device, 0);
        } else {
            pool.count.decrementAndGet();
        }
        try {
            return call.apply(handle);
        } finally {
            if (pool.count.incrementAndGet() <= IDLE_MOST) {
                pool.idle.addFirst(handle);
            } else {
                pool.count.decrementAndGet();
                handle.close();
            }
        }
    }
}
