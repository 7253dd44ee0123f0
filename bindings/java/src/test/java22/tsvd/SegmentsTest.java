package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class SegmentsTest {
    private static final double[] D = {4, 3, 2, 1};
    private static final double[] E = {1, 1, 1};

    @Test
    void segmentsAreUsedInPlace() {
        Svd wanted = Svd.of(D, E);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment d = arena.allocateFrom(ValueLayout.JAVA_DOUBLE, D);
            MemorySegment e = arena.allocateFrom(ValueLayout.JAVA_DOUBLE, E);
            MemorySegment s = arena.allocate(ValueLayout.JAVA_DOUBLE, 4);
            MemorySegment u = arena.allocate(ValueLayout.JAVA_DOUBLE, 16);
            MemorySegment vh = arena.allocate(ValueLayout.JAVA_DOUBLE, 16);
            Svd.into(Segments.of(d, DType.FLOAT64), Segments.of(e, DType.FLOAT64),
                    Segments.of(u, DType.FLOAT64, 4, 4), Segments.of(s, DType.FLOAT64),
                    Segments.of(vh, DType.FLOAT64, 4, 4), Options.DEFAULT);
            for (int i = 0; i < 16; i++) {
                assertEquals(wanted.u().doubles()[i], u.getAtIndex(ValueLayout.JAVA_DOUBLE, i));
                assertEquals(wanted.vh().doubles()[i], vh.getAtIndex(ValueLayout.JAVA_DOUBLE, i));
            }
            assertEquals(wanted.s().get(3), Segments.of(s, DType.FLOAT64).get(3));
        }
    }

    @Test
    void mixedWithJavaArrays() {
        try (Arena arena = Arena.ofShared()) {
            NDArray s = Segments.of(arena.allocate(16), DType.FLOAT32);
            Svd.into(NDArray.of(new float[] {4, 3, 2, 1}), NDArray.of(new float[] {1, 1, 1}), null,
                    s, null, Options.DEFAULT);
            assertEquals(Svd.of(D, E).s().get(0), s.get(0), 1e-5);
        }
    }

    @Test
    void whatIsRefused() throws InterruptedException {
        NDArray e = NDArray.of(E);
        assertThrows(IllegalArgumentException.class,
                () -> Segments.of(MemorySegment.ofArray(D), DType.FLOAT64));
        NDArray closed;
        try (Arena arena = Arena.ofConfined()) {
            NDArray d = Segments.of(arena.allocateFrom(ValueLayout.JAVA_DOUBLE, D), DType.FLOAT64);
            closed = d;
            assertThrows(IllegalArgumentException.class,
                    () -> Segments.of(arena.allocate(32), DType.FLOAT64, 5));
            NDArray readOnly = Segments.of(arena.allocate(32).asReadOnly(), DType.FLOAT64);
            assertThrows(IllegalArgumentException.class,
                    () -> Svd.into(d, e, null, readOnly, null, Options.DEFAULT));
            TsvdException overlap = assertThrows(TsvdException.class,
                    () -> Svd.into(d, e, null, d, null, Options.DEFAULT));
            assertEquals(Status.ARGUMENT, overlap.status());
            Throwable[] thrown = new Throwable[1];
            Thread other = new Thread(() -> thrown[0] = assertThrows(WrongThreadException.class,
                    () -> Svd.of(d, e, Options.DEFAULT)));
            other.start();
            other.join();
            assertEquals(WrongThreadException.class, thrown[0].getClass());
        }
        assertThrows(IllegalStateException.class, () -> Svd.of(closed, e, Options.DEFAULT));
    }
}
