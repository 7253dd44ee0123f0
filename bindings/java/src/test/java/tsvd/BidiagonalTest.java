package tsvd;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class BidiagonalTest {
    static Stream<String> families() {
        return Families.ALL.keySet().stream();
    }

    static DoubleBuffer direct(long numbers) {
        return ByteBuffer.allocateDirect((int) numbers * Double.BYTES)
                .order(ByteOrder.nativeOrder()).asDoubleBuffer();
    }

    private static float[] floats(double[] x) {
        float[] y = new float[x.length];
        for (int i = 0; i < x.length; i++) {
            y[i] = (float) x[i];
        }
        return y;
    }

    @ParameterizedTest
    @MethodSource("families")
    void familiesOfMatrices(String family) {
        for (int n : new int[] {1, 2, 3, 8, 33, 120}) {
            for (boolean lower : new boolean[] {false, true}) {
                for (boolean extra : new boolean[] {false, true}) {
                    double[][] b = Families.make(family, n, extra, 1);
                    Svd svd = Svd.of(b[0], b[1], Options.builder().lower(lower).build());
                    NDArray a = NDArray.of(Measures.dense(b[0], b[1], lower));
                    Measures.check(a, svd, family + " " + n + " " + lower + " " + extra);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = Method.class, names = {"AUTO", "DC", "QR", "GIVENS", "TWISTED"})
    void methods(Method method) {
        double[][] b = Families.make("normal", 70, false, 2);
        Svd svd = Svd.of(b[0], b[1], Options.builder().method(method).build());
        Measures.check(NDArray.of(Measures.dense(b[0], b[1], false)), svd, method.name());
        assertTrue(method == Method.AUTO || svd.info().method() == method);
        assertTrue(svd.info().seconds() > 0);
    }

    @Test
    void knownValues() {
        int n = 50;
        double[] ones = new double[n];
        Arrays.fill(ones, 1);
        double[] s = Svd.values(ones, Arrays.copyOf(ones, n - 1));
        for (int k = 1; k <= n; k++) {
            double value = 2 * Math.cos(k * Math.PI / (2 * n + 1));
            assertEquals(value, s[k - 1], (8 + n / 8.0) * Math.ulp(1.0) * value + Math.ulp(2.0));
        }
    }

    @Test
    void singlePrecision() {
        double[][] b = Families.make("normal", 60, false, 3);
        float[] d = floats(b[0]);
        float[] e = floats(b[1]);
        Svd svd = Svd.of(d, e, Options.DEFAULT);
        assertEquals(DType.FLOAT32, svd.u().dtype());
        assertEquals(60, svd.s().floats().length);
        double[][] dense =
                Measures.dense(NDArray.of(d).toDoubles(), NDArray.of(e).toDoubles(), false);
        Measures.check(Measures.matrix(NDArray.of(dense)), Measures.matrix(svd.u()),
                svd.s().toDoubles(), Measures.matrix(svd.vh()), Math.ulp(1.0f), "float");
    }

    @Test
    void batchesBroadcast() {
        double[] d = new double[3 * 2 * 5];
        for (int i = 0; i < d.length; i++) {
            d[i] = i + 1;
        }
        double[] e = {1, 2, 3, 4, 5, 6, 7, 8};
        Svd svd = Svd.of(NDArray.of(d, 3, 2, 5), NDArray.of(e, 2, 4), Options.DEFAULT);
        assertArrayEquals(new long[] {3, 2, 5, 5}, svd.u().shape());
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 2; j++) {
                int at = (2 * i + j) * 5;
                Svd one = Svd.of(Arrays.copyOfRange(d, at, at + 5),
                        Arrays.copyOfRange(e, 4 * j, 4 * j + 4));
                assertArrayEquals(one.s().doubles(),
                        Arrays.copyOfRange(svd.s().doubles(), at, at + 5));
                assertArrayEquals(one.vh().doubles(),
                        Arrays.copyOfRange(svd.vh().doubles(), 5 * at, 5 * at + 25));
            }
        }
    }

    @Test
    void partsOfTheValues() {
        double[][] b = Families.make("uniform_1", 40, false, 4);
        double[] all = Svd.values(b[0], b[1]);
        Svd part = Svd.of(b[0], b[1], Options.builder().range(3, 5).build());
        assertArrayEquals(new long[] {40, 5}, part.u().shape());
        for (int i = 0; i < 5; i++) {
            assertEquals(all[3 + i], part.s().get(i), 20 * Math.ulp(all[3 + i]));
        }
        Options interval = Options.builder().interval(all[9], Double.POSITIVE_INFINITY).build();
        assertEquals(9, Svd.of(b[0], b[1], interval).s().size(), 1);
        Options none = Options.builder().interval(1e3, 2e3).vectors(Vectors.NONE).build();
        assertEquals(0, Svd.of(b[0], b[1], none).s().size());
    }

    @Test
    void wholeBases() {
        double[][] b = Families.make("normal", 7, true, 5);
        Options full = Options.builder().vectors(Vectors.FULL).build();
        Svd svd = Svd.of(b[0], b[1], full);
        assertArrayEquals(new long[] {8, 8}, svd.vh().shape());
        double[][] dense = Measures.dense(b[0], b[1], false);
        for (double[] row : dense) { // the last row of Vh is the null vector
            double product = 0;
            for (int j = 0; j < 8; j++) {
                product += row[j] * svd.vh().get(7, j);
            }
            assertEquals(0, product, 100 * Math.ulp(1.0));
        }
        Svd lower = Svd.of(b[0], b[1], Options.builder().vectors(Vectors.FULL).lower(true).build());
        assertArrayEquals(new long[] {8, 8}, lower.u().shape());
    }

    @Test
    void emptyMatrices() {
        assertEquals(0, Svd.of(new double[0], new double[0]).s().size());
        Svd svd = Svd.of(NDArray.of(new double[0], 0, 4), NDArray.of(new double[0], 0, 3),
                Options.DEFAULT);
        assertArrayEquals(new long[] {0, 4, 4}, svd.u().shape());
    }

    @Test
    void valuesAlone() {
        Svd svd = Svd.of(new double[] {3}, new double[0],
                Options.builder().vectors(Vectors.NONE).build());
        assertNull(svd.u());
        assertNull(svd.vh());
        assertArrayEquals(new double[] {3}, svd.s().doubles());
    }

    @Test
    void nativeMemoryIsUsedInPlace() {
        double[][] b = Families.make("normal", 20, false, 6);
        DoubleBuffer d = direct(21).put(7).put(b[0]).position(1); // where it begins
        DoubleBuffer e = direct(19).put(b[1]).flip();
        DoubleBuffer u = direct(400);
        DoubleBuffer s = direct(20);
        DoubleBuffer vh = direct(400);
        Info info = Svd.into(NDArray.of(d), NDArray.of(e), NDArray.of(u, 20, 20), NDArray.of(s),
                NDArray.of(vh, 20, 20), Options.DEFAULT);
        assertTrue(info.seconds() > 0);
        Svd wanted = Svd.of(b[0], b[1]);
        for (int i = 0; i < 400; i++) {
            assertEquals(wanted.u().doubles()[i], u.get(i));
            assertEquals(wanted.vh().doubles()[i], vh.get(i));
        }
        assertEquals(wanted.s().get(19), s.get(19));
    }

    @Test
    void stridedInput() {
        double[] reversed = {5, -1, 4, -1, 3, -1, 2, -1, 1};
        NDArray d = NDArray.of(reversed).strided(8, new long[] {5}, new long[] {-2});
        NDArray e = NDArray.of(reversed).strided(1, new long[] {4}, new long[] {0});
        assertArrayEquals(new double[] {1, 2, 3, 4, 5}, d.toDoubles());
        assertArrayEquals(
                Svd.of(new double[] {1, 2, 3, 4, 5}, new double[] {-1, -1, -1, -1}).s().doubles(),
                Svd.of(d, e, Options.DEFAULT).s().doubles());
    }

    @Test
    void inputIsNotWritten() {
        double[] d = {1, 2, 3};
        double[] e = {4, 5};
        Svd.of(d, e);
        assertArrayEquals(new double[] {1, 2, 3}, d);
        assertArrayEquals(new double[] {4, 5}, e);
    }
}
