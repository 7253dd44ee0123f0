import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import tsvd.Device;
import tsvd.Handle;
import tsvd.NDArray;
import tsvd.Options;
import tsvd.Tsvd;
import tsvd.Vectors;

/** Microseconds of a call of tsvd from Java, as overhead.c has them from C. */
final class Overhead {
    private static NDArray direct(double[] numbers, long... shape) {
        return NDArray.of(ByteBuffer.allocateDirect(numbers.length * Double.BYTES)
                .order(ByteOrder.nativeOrder()).asDoubleBuffer().put(numbers).flip(), shape);
    }

    private static void time(String what, int n, boolean vectors, Runnable call) {
        int calls = n == 8 ? 1000 : 1;
        int rounds = n == 8 ? 200 : 50;
        double best = Double.MAX_VALUE;
        for (int i = 0; i < (n == 8 ? 100_000 : 20); i++) {
            call.run(); // until all is compiled
        }
        for (int round = 0; round < rounds; round++) {
            long begin = System.nanoTime();
            for (int i = 0; i < calls; i++) {
                call.run();
            }
            best = Math.min(best, (System.nanoTime() - begin) / 1e3 / calls);
        }
        System.out.printf("%-4s n = %-4d %-8s %10.2f us  %s%n", Tsvd.backEnd(), n,
                vectors ? "vectors" : "values", best, what);
    }

    public static void main(String[] args) {
        try (Handle handle = Handle.open(Device.CPU, 1)) {
            for (int n : new int[] {8, 500}) {
                double[] d = new double[n];
                double[] e = new double[n - 1];
                for (int j = 0; j < n; j++) {
                    d[j] = (double) (j * 37 % 101 + 1) / 101;
                    e[Math.min(j, n - 2)] = (double) (Math.min(j, n - 2) * 53 % 97 + 1) / 97;
                }
                for (boolean vectors : new boolean[] {false, true}) {
                    Options options = Options.builder()
                            .vectors(vectors ? Vectors.THIN : Vectors.NONE).build();
                    time("Java arrays, new results", n, vectors,
                            () -> handle.svd(NDArray.of(d), NDArray.of(e), options));
                    NDArray dd = direct(d);
                    NDArray ee = direct(e);
                    NDArray u = vectors ? direct(new double[n * n], n, n) : null;
                    NDArray s = direct(new double[n]);
                    NDArray vh = vectors ? direct(new double[n * n], n, n) : null;
                    time("direct buffers, in place", n, vectors,
                            () -> handle.svdInto(dd, ee, u, s, vh, options));
                }
            }
        }
    }
}
