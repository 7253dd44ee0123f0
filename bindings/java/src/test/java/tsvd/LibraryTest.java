package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class LibraryTest {
    @Test
    void backEnd() {
        String wanted = System.getProperty("tsvd.backend",
                Runtime.version().feature() >= 22 ? "ffm" : "jna");
        assertEquals(wanted, Tsvd.backEnd());
    }

    @Test
    void version() {
        assertEquals(System.getProperty("tsvd.pom.version"), Tsvd.version());
        assertTrue(Tsvd.threads() >= 1);
        assertTrue(Tsvd.cudaDevices() >= 0);
    }
}
