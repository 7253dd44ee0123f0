package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The measures of testing/measures.py, with its bounds. */
final class Measures {
    private Measures() {
    }

    private static final double RESIDUAL = 2;
    private static final double ORTHOGONALITY = 3;

    /** A bidiagonal matrix as a dense one. */
    static double[][] dense(double[] d, double[] e, boolean lower) {
        int n = d.length;
        int extra = n > 0 && e.length == n ? 1 : 0;
        double[][] b = new double[n + (lower ? extra : 0)][n + (lower ? 0 : extra)];
        for (int i = 0; i < n; i++) {
            b[i][i] = d[i];
        }
        for (int i = 0; i < Math.min(e.length, n); i++) {
            b[lower ? i + 1 : i][lower ? i : i + 1] = e[i];
        }
        return b;
    }

    /** A matrix of a batch, real or complex, as [rows][columns]{re, im}. */
    static double[][][] matrix(NDArray x, long... batch) {
        long[] shape = x.shape();
        int rows = (int) shape[batch.length];
        int columns = (int) shape[batch.length + 1];
        double[][][] entries = new double[rows][columns][2];
        long[] index = java.util.Arrays.copyOf(batch, batch.length + 2);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                index[batch.length] = i;
                index[batch.length + 1] = j;
                entries[i][j][0] = x.get(index);
                entries[i][j][1] = x.imaginary(index);
            }
        }
        return entries;
    }

    /** All that must hold of U, s and Vh of a matrix; eps: that of their type. */
    static void check(double[][][] a, double[][][] u, double[] s, double[][][] vh, double eps,
            String what) {
        int m = a.length;
        int n = m == 0 ? vh.length == 0 ? 0 : vh[0].length : a[0].length;
        int k = s.length;
        double unit = (Math.max(m, n) + 8) * eps;
        for (int i = 0; i < k; i++) {
            assertTrue(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]), () -> what + ": the order of s");
            assertTrue(1 / s[i] > 0, () -> what + ": -0 in s");
        }
        assertTrue(orthogonality(u, true) <= ORTHOGONALITY * unit, () -> what + ": U");
        assertTrue(orthogonality(vh, false) <= ORTHOGONALITY * unit, () -> what + ": Vh");
        double largest = 0;
        for (double[][] row : a) {
            for (double[] x : row) {
                largest = Math.max(largest, Math.max(Math.abs(x[0]), Math.abs(x[1])));
            }
        }
        if (largest == 0) {
            assertEquals(0, k == 0 ? 0 : s[0], what);
            return;
        }
        int shift = -Math.getExponent(Math.max(largest, Double.MIN_NORMAL));
        double norm = 0;
        double error = 0;
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < n; j++) {
                double re = scaled(a[i][j][0], shift);
                double im = scaled(a[i][j][1], shift);
                norm += re * re + im * im;
                for (int l = 0; l < k; l++) {
                    double size = scaled(s[l], shift);
                    double[] x = u[i][l];
                    double[] y = vh[l][j];
                    re -= size * (x[0] * y[0] - x[1] * y[1]);
                    im -= size * (x[0] * y[1] + x[1] * y[0]);
                }
                error += re * re + im * im;
            }
        }
        double least = scaled(eps == Math.ulp(1.0) ? Double.MIN_NORMAL : Float.MIN_NORMAL, shift);
        double residual = Math.sqrt(error) / (unit * Math.max(Math.sqrt(norm), least));
        assertTrue(residual <= RESIDUAL, () -> what + ": residual " + residual);
    }

    /** In two steps, as 2^shift alone may be beyond the range. */
    private static double scaled(double x, int shift) {
        return Math.scalb(Math.scalb(x, shift / 2), shift - shift / 2);
    }

    /** max |X^H X - I|, or of rows. */
    private static double orthogonality(double[][][] x, boolean columns) {
        int count = columns ? x.length == 0 ? 0 : x[0].length : x.length;
        int length = columns ? x.length : count == 0 ? 0 : x[0].length;
        double most = 0;
        for (int p = 0; p < count; p++) {
            for (int q = 0; q <= p; q++) {
                double re = p == q ? -1 : 0;
                double im = 0;
                for (int i = 0; i < length; i++) {
                    double[] a = columns ? x[i][p] : x[p][i];
                    double[] b = columns ? x[i][q] : x[q][i];
                    re += a[0] * b[0] + a[1] * b[1];
                    im += a[0] * b[1] - a[1] * b[0];
                }
                most = Math.max(most, Math.hypot(re, im));
            }
        }
        return most;
    }

    static double eps(DType dtype) {
        return dtype.ofValues() == DType.FLOAT64 ? Math.ulp(1.0) : Math.ulp(1.0f);
    }

    /** A result of one matrix against the matrix. */
    static void check(NDArray a, Svd svd, String what) {
        check(matrix(a), matrix(svd.u()), svd.s().toDoubles(), matrix(svd.vh()), eps(a.dtype()),
                what);
    }
}
