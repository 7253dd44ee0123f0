package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Numbers of the host, decomposed on a GPU. */
class CudaTest {
    private static final Device CUDA = Device.cuda(0);

    private static Options.Builder options() {
        return Options.builder().device(CUDA);
    }

    @BeforeEach
    void thereIsADevice() {
        assumeTrue(Tsvd.cudaDevices() > 0, "there is no CUDA device");
    }

    @Test
    void familiesOfMatrices() {
        for (String family : Families.ALL.keySet()) {
            for (int n : new int[] {1, 2, 8, 33, 120}) {
                for (boolean lower : new boolean[] {false, true}) {
                    for (boolean extra : new boolean[] {false, true}) {
                        double[][] b = Families.make(family, n, extra, 1);
                        Svd svd = Svd.of(b[0], b[1], options().lower(lower).build());
                        Measures.check(NDArray.of(Measures.dense(b[0], b[1], lower)), svd,
                                family + " " + n + " " + lower + " " + extra);
                    }
                }
            }
        }
    }

    @Test
    void denseMatrices() {
        for (DType dtype : DType.values()) {
            for (int[] shape : new int[][] {{1, 1}, {5, 5}, {70, 20}, {20, 70}, {130, 120}}) {
                NDArray a = DenseTest.gaussian(dtype, Math.min(shape[0], shape[1]), shape[0],
                        shape[1]);
                Measures.check(a, Svd.of(a, options().build()),
                        dtype + " " + shape[0] + " x " + shape[1]);
            }
        }
    }

    @Test
    void inverses() {
        Inverse inverse = Inverse.of(NDArray.of(new double[][] {{2, 1}, {1, 1}}),
                options().build());
        assertEquals(-1, inverse.x().get(0, 1), 1e-14);
        TsvdException e = assertThrows(TsvdException.class,
                () -> Inverse.of(NDArray.of(new double[][] {{1, 1}, {1, 1}}), options().build()));
        assertEquals(Status.SINGULAR, e.status());
        assertEquals(0, e.matrix());
    }

    @Test
    void errors() {
        double[] d = {1, Double.NaN, 3};
        TsvdException e = assertThrows(TsvdException.class,
                () -> Svd.of(d, new double[] {1, 1}, options().build()));
        assertEquals(Status.NONFINITE, e.status());
        e = assertThrows(TsvdException.class, () -> Svd.of(new double[] {1}, new double[0],
                Options.builder().device(Device.cuda(1000)).build()));
        assertEquals(Status.NO_DEVICE, e.status());
    }

    @Test
    void listenersThatStop() {
        double[][] b = Families.make("toeplitz", 3000, false, 1);
        TsvdException e = assertThrows(TsvdException.class,
                () -> Svd.of(b[0], b[1], options().method(Method.DC).progress(x -> true).build()));
        assertEquals(Status.INTERRUPTED, e.status());
        assertTrue(Svd.of(b[0], b[1], options().build()).info().seconds() > 0);
    }
}
