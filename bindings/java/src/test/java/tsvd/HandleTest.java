package tsvd;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class HandleTest {
    private static final NDArray D = NDArray.of(new double[] {4, 3, 2, 1});
    private static final NDArray E = NDArray.of(new double[] {1, 1, 1});

    /** A matrix that takes the library some tenths of a second or more. */
    private static double[][] slow() {
        return Families.make("toeplitz", 1500, false, 1);
    }

    private static Options slowly(ProgressListener listener) {
        return Options.builder().method(Method.QR).threads(1).progress(listener).build();
    }

    @Test
    void closedHandles() {
        Handle handle = Handle.open();
        assertEquals(4, handle.svd(D, E, Options.DEFAULT).s().size());
        handle.trim();
        handle.close();
        handle.close();
        assertThrows(IllegalStateException.class, () -> handle.svd(D, E, Options.DEFAULT));
        assertThrows(IllegalStateException.class, handle::trim);
    }

    @Test
    void handlesOfADevice() {
        try (Handle handle = Handle.open(Device.CPU, 2)) {
            assertEquals(Device.CPU, handle.device());
            Options other = Options.builder().device(Device.cuda(0)).build();
            assertThrows(IllegalArgumentException.class, () -> handle.svd(D, E, other));
            Options one = Options.builder().threads(1).build();
            assertArrayEquals(handle.svd(D, E, Options.DEFAULT).s().doubles(),
                    handle.svd(D, E, one).s().doubles());
        }
        assertThrows(TsvdException.class, () -> Handle.open(Device.CPU, -3));
        assertThrows(IllegalArgumentException.class, () -> Device.cuda(-1));
    }

    @Test
    void progress() {
        double[][] b = Families.make("normal", 700, false, 1);
        List<Double> told = new ArrayList<>();
        Thread caller = Thread.currentThread();
        Svd.of(b[0], b[1], slowly(done -> {
            assertSame(caller, Thread.currentThread());
            told.add(done);
            return false;
        }));
        assertTrue(told.size() > 2, "told " + told.size() + " times");
        for (int i = 0; i < told.size(); i++) {
            assertTrue(told.get(i) >= (i == 0 ? 0 : told.get(i - 1)) && told.get(i) <= 1);
        }
    }

    @Test
    void listenersThatStop() {
        double[][] b = slow();
        TsvdException e = assertThrows(TsvdException.class,
                () -> Svd.of(b[0], b[1], slowly(done -> true)));
        assertEquals(Status.INTERRUPTED, e.status());
        IllegalCallerException own = new IllegalCallerException("mine");
        assertSame(own, assertThrows(IllegalCallerException.class,
                () -> Svd.of(b[0], b[1], slowly(done -> {
                    throw own;
                }))));
        assertEquals(4, Svd.of(D, E, Options.DEFAULT).s().size()); // and then all is well
    }

    @Test
    void listenersThatCall() {
        double[][] b = Families.make("normal", 300, false, 2);
        Svd.of(b[0], b[1], slowly(done -> Svd.of(D, E, Options.DEFAULT).s().size() != 4));
        try (Handle handle = Handle.open()) {
            NDArray d = NDArray.of(b[0]);
            NDArray e = NDArray.of(b[1]);
            assertThrows(IllegalStateException.class, () -> handle.svd(d, e, slowly(done -> {
                handle.svd(D, E, Options.DEFAULT);
                return false;
            })));
            assertThrows(IllegalStateException.class, () -> handle.svd(d, e, slowly(done -> {
                handle.close();
                return false;
            })));
            assertEquals(4, handle.svd(D, E, Options.DEFAULT).s().size());
        }
    }

    @Test
    @Timeout(60)
    void interrupts() throws InterruptedException {
        double[][] b = slow();
        CountDownLatch begun = new CountDownLatch(1);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        boolean[] still = new boolean[1];
        Thread thread = new Thread(() -> {
            try {
                Svd.of(b[0], b[1], slowly(done -> {
                    begun.countDown();
                    return false;
                }));
            } catch (TsvdException e) {
                thrown.set(e);
                still[0] = Thread.currentThread().isInterrupted();
            }
        });
        thread.start();
        begun.await();
        thread.interrupt();
        thread.join();
        assertEquals(Status.INTERRUPTED, ((TsvdException) thrown.get()).status());
        assertTrue(still[0]);
    }

    @Test
    @Timeout(60)
    void closeWaitsForTheCall() throws InterruptedException {
        double[][] b = Families.make("normal", 900, false, 3);
        Handle handle = Handle.open();
        CountDownLatch begun = new CountDownLatch(1);
        AtomicReference<Svd> result = new AtomicReference<>();
        Thread thread = new Thread(() -> result.set(
                handle.svd(NDArray.of(b[0]), NDArray.of(b[1]), slowly(done -> {
                    begun.countDown();
                    return false;
                }))));
        thread.start();
        begun.await();
        handle.close();
        thread.join();
        assertEquals(900, result.get().s().size());
    }

    @Test
    void cuda() {
        assumeTrue(Tsvd.cudaDevices() > 0, "there is no CUDA device, or no back end for it");
        double[][] b = Families.make("normal", 200, false, 5);
        Options options = Options.builder().device(Device.cuda(0)).build();
        Svd svd = Svd.of(b[0], b[1], options);
        Measures.check(NDArray.of(Measures.dense(b[0], b[1], false)), svd, "cuda");
        NDArray a = DenseTest.gaussian(DType.COMPLEX64, 30, 40, 30);
        Measures.check(a, Svd.of(a, options), "cuda");
    }

    /** 10^4 calls from 8 threads, half of them with one handle for all. */
    @Test
    @Timeout(120)
    void manyThreads() throws Exception {
        int threads = 8;
        int calls = 10_000;
        double[][] b = Families.make("normal", 12, false, 4);
        Options options = Options.builder().threads(1).build();
        Svd wanted = Svd.of(b[0], b[1], options);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try (Handle shared = Handle.open()) {
            List<Future<Integer>> made = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                made.add(pool.submit(() -> {
                    int good = 0;
                    for (int i = 0; i < calls / threads; i++) {
                        NDArray d = NDArray.of(b[0]);
                        NDArray e = NDArray.of(b[1]);
                        Svd svd = i % 2 == 0 ? Svd.of(d, e, options) : shared.svd(d, e, options);
                        assertArrayEquals(wanted.s().doubles(), svd.s().doubles());
                        assertArrayEquals(wanted.u().doubles(), svd.u().doubles());
                        assertArrayEquals(wanted.vh().doubles(), svd.vh().doubles());
                        good++;
                    }
                    return good;
                }));
            }
            int sum = 0;
            for (Future<Integer> future : made) {
                sum += future.get();
            }
            assertEquals(calls, sum);
        } finally {
            pool.shutdown();
        }
        assertFalse(Thread.currentThread().isInterrupted());
    }
}
