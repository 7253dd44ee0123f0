import java.util.Random;
import tsvd.Method;
import tsvd.NDArray;
import tsvd.Options;
import tsvd.Svd;
import tsvd.Tsvd;

/**
 * Repeats tables 3.1 to 3.5 of M. Semylitko's thesis (NaUKMA, 2021): Givens rotations on bidiagonal
 * matrices with uniform entries, eps = 1e-8, means of five matrices.
 *
 * <p>Iterations are loop steps of all threads. The published matrices are not known, only their
 * range, so the order of magnitude can agree. The error is the largest max |B - U diag(s) Vh| of
 * the five, in units of the range. The argument is the largest order, 200 if it is left out.
 */
final class PublishedTables {
    private static final int[] ORDERS = {20, 50, 100, 200, 500};
    private static final int[] RANGES = {1, 5, 10, 50, 1000};
    private static final long[][] ITERATIONS = {
        {19946, 23278, 32320, 86214, 35802},
        {241623, 180934, 526510, 696956, 243615},
        {496900, 3205170, 1332300, 2103700, 4120330},
        {1145220, 3294780, 1154460, 2988360, 4945880},
        {4004050, 14768500, 6393350, 8896750, 49579550},
    };
    private static final int MATRICES = 5;

    private static double error(double[] d, double[] e, Svd svd) {
        int n = d.length;
        NDArray u = svd.u();
        NDArray vh = svd.vh();
        double most = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double entry = i == j ? d[i] : i + 1 == j ? e[i] : 0;
                for (int k = 0; k < n; k++) {
                    entry -= u.get(i, k) * svd.s().get(k) * vh.get(k, j);
                }
                most = Math.max(most, Math.abs(entry));
            }
        }
        return most;
    }

    public static void main(String[] args) {
        int largest = args.length > 0 ? Integer.parseInt(args[0]) : 200;
        Options options = Options.builder().method(Method.GIVENS).eps(1e-8).build();
        Random random = new Random(1);
        System.out.printf("tsvd %s, %s%n%5s %9s %21s %12s %8s %9s%n", Tsvd.version(),
                Tsvd.backEnd(), "n", "range", "iterations: published", "tsvd", "ms", "error");
        for (int i = 0; i < ORDERS.length && ORDERS[i] <= largest; i++) {
            int n = ORDERS[i];
            for (int r = 0; r < RANGES.length; r++) {
                long iterations = 0;
                double seconds = 0;
                double error = 0;
                for (int m = 0; m < MATRICES; m++) {
                    double[] d = random.doubles(n, 0, RANGES[r]).toArray();
                    double[] e = random.doubles(n - 1, 0, RANGES[r]).toArray();
                    Svd svd = Svd.of(d, e, options);
                    iterations += svd.info().iterations() / MATRICES;
                    seconds += svd.info().seconds() / MATRICES;
                    error = Math.max(error, error(d, e, svd) / RANGES[r]);
                }
                System.out.printf("%5d %9s %21d %12d %8.2f %9.1e%n", n, "[0," + RANGES[r] + "]",
                        ITERATIONS[i][r], iterations, 1e3 * seconds, error);
            }
        }
    }
}
