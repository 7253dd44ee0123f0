package tsvd;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;
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

    /**
     * The heap and compiled code grow too, but not for ever: what leaks grows in every round. The
     * bound is that of 80 bytes lost by each of 10^5 calls.
     */
    @Test
    void residentMemoryStays() throws IOException {
        assumeTrue(Files.exists(STATUS), "there is no " + STATUS);
        calls(20_000);
        StringBuilder grown = new StringBuilder();
        for (int round = 0; round < 4; round++) {
            long before = resident();
            calls(100_000);
            long more = resident() - before;
            if (more < 8_000) {
                return;
            }
            grown.append(' ').append(more);
        }
        fail("grown by KiB:" + grown);
    }
}
