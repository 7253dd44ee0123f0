package tsvd;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class DenseTest {
    @BeforeAll
    static void blas() {
        assumeTrue(Tsvd.hasBlas(), "there is no BLAS");
    }

    static NDArray gaussian(DType dtype, int rank, long... shape) {
        Random random = new Random(7);
        int m = (int) shape[shape.length - 2];
        int n = (int) shape[shape.length - 1];
        int matrices = shape.length == 2 ? 1 : (int) shape[0];
        int parts = dtype == DType.COMPLEX128 || dtype == DType.COMPLEX64 ? 2 : 1;
        double[] a = new double[matrices * m * n * parts];
        for (int b = 0; b < matrices; b++) {
            for (int r = 0; r < rank; r++) {
                double[] x = random.doubles((long) m * parts, -1, 1).toArray();
                double[] y = random.doubles(n, -1, 1).toArray();
                for (int i = 0; i < m; i++) {
                    for (int j = 0; j < n; j++) {
                        for (int p = 0; p < parts; p++) {
                            a[((b * m + i) * n + j) * parts + p] += x[i * parts + p] * y[j];
                        }
                    }
                }
            }
        }
        if (dtype.ofValues() == DType.FLOAT64) {
            return parts == 1 ? NDArray.of(a, shape) : NDArray.ofComplex(a, shape);
        }
        float[] f = new float[a.length];
        for (int i = 0; i < f.length; i++) {
            f[i] = (float) a[i];
        }
        return parts == 1 ? NDArray.of(f, shape) : NDArray.ofComplex(f, shape);
    }

    @ParameterizedTest
    @EnumSource(DType.class)
    void types(DType dtype) {
        for (int[] shape : new int[][] {{1, 1}, {5, 5}, {40, 40}, {70, 20}, {20, 70}, {3, 100}}) {
            NDArray a = gaussian(dtype, Math.min(shape[0], shape[1]), shape[0], shape[1]);
            Svd svd = Svd.of(a, Options.DEFAULT);
            assertEquals(dtype, svd.u().dtype());
            assertEquals(dtype.ofValues(), svd.s().dtype());
            Measures.check(a, svd, dtype + " " + shape[0] + " x " + shape[1]);
        }
    }

    @Test
    void deficientRank() {
        NDArray a = gaussian(DType.FLOAT64, 3, 30, 20);
        Svd svd = Svd.of(a, Options.DEFAULT);
        Measures.check(a, svd, "rank 3");
        assertTrue(svd.s().get(3) < 100 * Math.ulp(svd.s().get(0)));
    }

    @ParameterizedTest
    @CsvSource({"0", "1", "1e300", "1e-300"})
    void constantMatrices(double entry) {
        double[] entries = new double[12 * 9];
        java.util.Arrays.fill(entries, entry);
        NDArray a = NDArray.of(entries, 12, 9);
        Measures.check(a, Svd.of(a, Options.DEFAULT), "constant " + entry);
    }

    @Test
    void jacobi() {
        NDArray a = gaussian(DType.FLOAT64, 15, 30, 15);
        Svd svd = Svd.of(a, Options.builder().method(Method.JACOBI).build());
        Measures.check(a, svd, "jacobi");
        assertEquals(Method.JACOBI, svd.info().method());
    }

    @Test
    void rowsAndTransposes() {
        double[][] rows = {{1, 2, 3}, {4, 5, 6}};
        Svd svd = Svd.of(rows);
        Measures.check(NDArray.of(rows), svd, "rows");
        assertArrayEquals(new long[] {2, 2}, svd.u().shape());
        NDArray byColumns = NDArray.of(new double[] {1, 4, 2, 5, 3, 6}, 3, 2).transposed();
        assertArrayEquals(rows[1], byColumns.toRows()[1]);
        assertArrayEquals(svd.s().doubles(), Svd.of(byColumns, Options.DEFAULT).s().doubles());
        assertArrayEquals(svd.s().doubles(), Svd.values(rows), 1e-14);
        Svd single = Svd.of(new float[][] {{1, 2, 3}, {4, 5, 6}}, Options.DEFAULT);
        assertEquals(svd.s().get(0), single.s().get(0), 1e-5);
    }

    @Test
    void batches() {
        NDArray a = gaussian(DType.COMPLEX128, 6, 4, 8, 6);
        Svd svd = Svd.of(a, Options.DEFAULT);
        assertArrayEquals(new long[] {4, 6, 6}, svd.vh().shape());
        for (int i = 0; i < 4; i++) {
            double[] s = java.util.Arrays.copyOfRange(svd.s().doubles(), 6 * i, 6 * i + 6);
            Measures.check(Measures.matrix(a, i), Measures.matrix(svd.u(), i), s,
                    Measures.matrix(svd.vh(), i), Math.ulp(1.0), "matrix " + i);
        }
    }

    @Test
    void wholeBases() {
        NDArray a = gaussian(DType.FLOAT64, 6, 9, 6);
        Svd svd = Svd.of(a, Options.builder().vectors(Vectors.FULL).build());
        assertArrayEquals(new long[] {9, 9}, svd.u().shape());
        Measures.check(a, svd, "full");
    }

    @Test
    void partsOfTheValues() {
        NDArray a = gaussian(DType.FLOAT64, 30, 50, 30);
        double[] all = Svd.of(a, Options.DEFAULT).s().doubles();
        Svd part = Svd.of(a, Options.builder().range(0, 4).build());
        assertArrayEquals(new long[] {50, 4}, part.u().shape());
        double middle = (all[4] + all[5]) / 2;
        Svd largest = Svd.of(a, Options.builder().interval(middle, 2 * all[0]).build());
        assertEquals(5, largest.s().size());
        for (int i = 0; i < 4; i++) {
            assertEquals(all[i], part.s().get(i), 50 * Math.ulp(all[0]));
            assertEquals(all[i], largest.s().get(i), 50 * Math.ulp(all[0]));
        }
        NDArray s = NDArray.of(new double[5]);
        Svd.into(a, null, s, null, Options.builder().interval(middle, 2 * all[0]).build());
        assertEquals(all[0], s.get(0), 50 * Math.ulp(all[0]));
    }

    @Test
    void inverses() {
        NDArray a = gaussian(DType.FLOAT64, 20, 2, 20, 20);
        for (boolean refine : new boolean[] {false, true}) {
            Inverse inverse = Inverse.of(a, Options.builder().refine(refine).build());
            assertArrayEquals(new long[] {2, 20, 20}, inverse.x().shape());
            assertTrue(inverse.rcond() > 0 && inverse.rcond() < 1);
            for (int b = 0; b < 2; b++) {
                double[][][] m = Measures.matrix(a, b);
                double[][][] x = Measures.matrix(inverse.x(), b);
                double most = 0;
                for (int i = 0; i < 20; i++) {
                    for (int j = 0; j < 20; j++) {
                        double sum = i == j ? -1 : 0;
                        for (int k = 0; k < 20; k++) {
                            sum += m[i][k][0] * x[k][j][0];
                        }
                        most = Math.max(most, Math.abs(sum));
                    }
                }
                assertTrue(most < 1e-14 / inverse.rcond(), "A X - I: " + most);
            }
        }
        assertEquals(0.25, Inverse.of(new double[][] {{4}}).x().get(0, 0));
    }
}
