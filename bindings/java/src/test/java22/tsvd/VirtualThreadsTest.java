package tsvd;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

class VirtualThreadsTest {
    @Test
    void callsOfVirtualThreads() throws Exception {
        double[][] b = Families.make("normal", 20, false, 1);
        Options options = Options.builder().threads(1).progress(done -> false).build();
        double[] wanted = Svd.of(b[0], b[1], options).s().doubles();
        try (ExecutorService pool = Executors.newVirtualThreadPerTaskExecutor();
                Handle shared = Handle.open()) {
            List<Future<Svd>> made = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                made.add(pool.submit(i % 2 == 0 ? () -> Svd.of(b[0], b[1], options)
                        : () -> shared.svd(NDArray.of(b[0]), NDArray.of(b[1]), options)));
            }
            for (Future<Svd> svd : made) {
                assertArrayEquals(wanted, svd.get().s().doubles());
            }
        }
    }
}
