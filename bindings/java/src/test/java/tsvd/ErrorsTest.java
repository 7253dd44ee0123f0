package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class ErrorsTest {
    private static TsvdException fails(Status status, Executable call) {
        TsvdException e = assertThrows(TsvdException.class, call);
        assertEquals(status, e.status(), e.getMessage());
        assertFalse(e.text().isEmpty());
        assertTrue(e.getMessage().startsWith(e.text()));
        return e;
    }

    private static final double[] D = {1, 2, 3};
    private static final double[] E = {1, 1};

    @Test
    void shapesThatDoNotFit() {
        TsvdException e = fails(Status.ARGUMENT, () -> Svd.of(D, D.clone(), Options.builder()
                .method(Method.JACOBI).build()));
        assertEquals(-1, e.matrix());
        fails(Status.ARGUMENT, () -> Svd.of(D, new double[] {1}));
        fails(Status.ARGUMENT, () -> Svd.of(D, E, Options.builder().range(2, 5).build()));
        fails(Status.ARGUMENT, () -> Svd.of(D, E, Options.builder().range(-1, 1).build()));
        fails(Status.ARGUMENT, () -> Svd.of(D, E, Options.builder().interval(2, 1).build()));
        fails(Status.ARGUMENT, () -> Svd.of(NDArray.of(D), NDArray.of(new float[2]),
                Options.DEFAULT));
        fails(Status.ARGUMENT, () -> Svd.of(NDArray.ofComplex(new double[6]),
                NDArray.ofComplex(new double[4]), Options.DEFAULT));
        fails(Status.ARGUMENT, () -> Svd.of(NDArray.of(new double[12], 2, 2, 3),
                NDArray.of(new double[12], 3, 2, 2), Options.DEFAULT));
        fails(Status.ARGUMENT, () -> Svd.into(NDArray.of(D), NDArray.of(E), null,
                NDArray.of(new double[2]), null, Options.DEFAULT));
        fails(Status.ARGUMENT, () -> Svd.into(NDArray.of(D), NDArray.of(E), null, null, null,
                Options.DEFAULT));
        fails(Status.ARGUMENT, () -> Svd.of(NDArray.of(D), Options.DEFAULT)); // one dimension
        fails(Status.ARGUMENT, () -> Svd.of(D, E, Options.builder().threads(-1).build()));
        fails(Status.ARGUMENT, () -> Inverse.of(new double[2][3]));
        assertEquals(3, Svd.values(D, E).length); // and then all is well
    }

    @Test
    void whatJavaRefuses() {
        assertThrows(IllegalArgumentException.class, () -> NDArray.of(D, 4));
        assertThrows(IllegalArgumentException.class, () -> NDArray.of(D, -1));
        assertThrows(IllegalArgumentException.class, () -> NDArray.of(D, Long.MAX_VALUE, 2));
        assertThrows(IllegalArgumentException.class, () -> NDArray.of(D, new long[35]));
        assertThrows(IllegalArgumentException.class,
                () -> NDArray.of(D).strided(0, new long[] {2}, new long[] {3}));
        assertThrows(IllegalArgumentException.class,
                () -> NDArray.of(D).strided(0, new long[] {2}, new long[] {-1}));
        assertThrows(IllegalArgumentException.class, () -> NDArray.of(new double[][] {{1}, {}}));
        ByteBuffer bytes = ByteBuffer.allocateDirect(24);
        ByteOrder other = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN
                : ByteOrder.BIG_ENDIAN;
        assertThrows(IllegalArgumentException.class,
                () -> NDArray.of(bytes.order(other).asDoubleBuffer()));
        assertThrows(IllegalArgumentException.class,
                () -> NDArray.of(ByteBuffer.allocate(24).asDoubleBuffer()));
        NDArray readOnly = NDArray.of(bytes.order(ByteOrder.nativeOrder()).asReadOnlyBuffer()
                .order(ByteOrder.nativeOrder()).asDoubleBuffer());
        assertThrows(IllegalArgumentException.class, () -> Svd.into(NDArray.of(D), NDArray.of(E),
                null, readOnly, null, Options.DEFAULT));
        NDArray same = NDArray.of(new double[9], 3, 3);
        assertThrows(IllegalArgumentException.class, () -> Svd.into(NDArray.of(D), NDArray.of(E),
                same, NDArray.of(new double[3]), same, Options.DEFAULT));
        long huge = 1L << 20;
        NDArray d = NDArray.of(new double[1]).strided(0, new long[] {huge}, new long[] {0});
        NDArray e = NDArray.of(new double[1]).strided(0, new long[] {huge - 1}, new long[] {0});
        assertThrows(IllegalArgumentException.class, () -> Svd.of(d, e, Options.DEFAULT));
        assertThrows(IndexOutOfBoundsException.class, () -> NDArray.of(D).get(3));
        assertThrows(IllegalStateException.class, () -> NDArray.of(D, 2).doubles());
        assertThrows(NullPointerException.class, () -> Svd.of(null, E));
    }

    @Test
    void nan() {
        double[] d = {1, 2, 3, 4, Double.NaN, 6};
        NDArray batch = NDArray.of(d, 2, 3);
        NDArray e = NDArray.of(E);
        assertEquals(1, fails(Status.NONFINITE, () -> Svd.of(batch, e, Options.DEFAULT)).matrix());
        Svd filled = Svd.of(batch, e, Options.builder().checkFinite(false).build());
        assertTrue(Double.isNaN(filled.s().get(1, 0)) && filled.s().get(0, 0) > 0);
        fails(Status.NONFINITE,
                () -> Svd.of(new double[] {Double.POSITIVE_INFINITY}, new double[0]));
    }

    @Test
    void memory() {
        long n = 1L << 45; // entries that all are the same number
        NDArray d = NDArray.of(new double[] {1}).strided(0, new long[] {n}, new long[] {0});
        NDArray e = NDArray.of(new double[] {1}).strided(0, new long[] {n - 1}, new long[] {0});
        TsvdException failed = fails(Status.MEMORY, () -> Svd.of(d, e,
                Options.builder().vectors(Vectors.NONE).range(0, 1).build()));
        assertTrue(failed.wanted() > n);
    }

    @Test
    void noConvergence() {
        double[][] b = Families.make("normal", 100, false, 8);
        TsvdException e = fails(Status.NO_CONVERGENCE, () -> Svd.of(b[0], b[1],
                Options.builder().method(Method.QR).maxSweeps(1).build()));
        assertTrue(e.sweeps() > 0);
        assertFalse(e.advice().isEmpty());
    }

    @Test
    void noDevice() {
        assumeTrue(Tsvd.cudaDevices() == 0, "there is a CUDA device");
        fails(Status.NO_DEVICE, () -> Handle.open(Device.cuda(0), 0));
        Options cuda = Options.builder().device(Device.cuda(0)).build();
        fails(Status.NO_DEVICE, () -> Svd.of(D, E, cuda));
    }

    @Test
    void missingLibrary() {
        String file = "/nonexistent/libtsvd_cuda.so";
        assertTrue(fails(Status.LIBRARY, () -> Tsvd.loadCuda(file)).text().contains(file));
    }

    @Test
    void singular() {
        assumeTrue(Tsvd.hasBlas(), "there is no BLAS");
        NDArray a = NDArray.of(new double[] {1, 0, 0, 1, 1, 1, 1, 1}, 2, 2, 2);
        assertEquals(1, fails(Status.SINGULAR, () -> Inverse.of(a, Options.DEFAULT)).matrix());
    }

    @Test
    void numbersOfStatus() {
        assertEquals(Status.OTHER, Status.of(99));
        assertEquals(Status.UNSUPPORTED, Status.of(7));
        assertEquals(Status.CUDA, Status.of(8));
    }
}
