package tsvd;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class LeakTest {
    private static final Path STATUS = Path.of("/proc/self/status");

    /** Resident memory of the process in KiB. */
    private static long resident() throws IOException {
        System.gc();
        return Files.readAllLines(STATUS).stream().filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", ""))).findFirst()
                .orElseThrow();
    }

    private static void calls(int count) {
        double[] d = {4, 3, 2, 1};
        double[] e = {1, 1, 1};
        double[] wrong = {1};
        Options listening = Options.builder().progress(done -> false).build();
        for (int i = 0; i < count; i++) {
            switch (i % 8) {
                case 0 -> assertThrows(TsvdException.class, () -> Svd.of(d, wrong));
                case 1 -> Svd.of(d, e, listening);
                case 2 -> {
                    try (Handle handle = Handle.open(Device.CPU, 1)) {
                        handle.svd(NDArray.of(d), NDArray.of(e), Options.DEFAULT);
                    }
                }
                default -> Svd.of(d, e);
            }
        }
    }

    /** Had each of 10^5 calls lost 160 bytes, resident memory would grow by more than the bound. */
    @Test
    void residentMemoryStays() throws IOException {
        assumeTrue(Files.exists(STATUS), "there is no " + STATUS);
        calls(50_000); // the JIT and the heap settle
        long before = resident();
        calls(100_000);
        long grown = resident() - before;
        assertTrue(grown < 16_000, "grown by " + grown + " KiB");
    }
}
