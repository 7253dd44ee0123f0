package tsvd;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/** Families of bidiagonal matrices: some of those of testing/families.py, by the same names. */
final class Families {
    private Families() {
    }

    /** Fills d and e, whose lengths may differ by one or not at all. */
    private interface Family {
        void fill(double[] d, double[] e, Random random);
    }

    static final Map<String, Family> ALL = new LinkedHashMap<>();

    static {
        ALL.put("uniform_1", (d, e, random) -> both(d, e, i -> random.nextDouble()));
        ALL.put("normal", (d, e, random) -> both(d, e, i -> random.nextGaussian()));
        ALL.put("toeplitz", (d, e, random) -> both(d, e, i -> 1));
        ALL.put("graded_up", (d, e, random) -> graded(d, e, random, 0, 498));
        ALL.put("graded_down", (d, e, random) -> graded(d, e, random, 0, -498));
        ALL.put("graded_both", (d, e, random) -> graded(d, e, random, -498, 498));
        ALL.put("clustered", (d, e, random) -> {
            fill(d, i -> 1 + Math.ulp(1.0) * random.nextInt(50));
            fill(e, i -> Math.ulp(1.0) * (100 * random.nextDouble() - 50));
        });
        ALL.put("zero_middle", (d, e, random) -> {
            both(d, e, i -> random.nextGaussian());
            d[d.length / 2] = 0;
        });
        ALL.put("zeros_many", (d, e, random) -> {
            both(d, e, i -> random.nextGaussian());
            fill(d, i -> random.nextInt(3) == 0 ? -0.0 : random.nextGaussian());
        });
        ALL.put("zeros_off", (d, e, random) -> {
            fill(d, i -> random.nextGaussian());
            fill(e, i -> random.nextInt(3) == 0 ? 0 : random.nextGaussian());
        });
        ALL.put("zero", (d, e, random) -> both(d, e, i -> 0));
        ALL.put("identity", (d, e, random) -> {
            fill(d, i -> 1);
            fill(e, i -> 0);
        });
        ALL.put("near_overflow", (d, e, random) -> both(d, e,
                i -> Double.MAX_VALUE / 4 * (2 * random.nextDouble() - 1)));
        ALL.put("near_underflow", (d, e, random) -> both(d, e,
                i -> 16 * Double.MIN_NORMAL * (2 * random.nextDouble() - 1)));
        ALL.put("denormal", (d, e, random) -> both(d, e,
                i -> Double.MIN_VALUE * (random.nextInt(2001) - 1000)));
    }

    /** The entries of d, and of e, which has n-1 of them or n. */
    static double[][] make(String name, int n, boolean extra, int seed) {
        double[] d = new double[n];
        double[] e = new double[extra ? n : Math.max(n - 1, 0)];
        ALL.get(name).fill(d, e, new Random(31L * seed + name.hashCode() + 1000L * n));
        return new double[][] {d, e};
    }

    private static void fill(double[] x, java.util.function.IntToDoubleFunction entry) {
        for (int i = 0; i < x.length; i++) {
            x[i] = entry.applyAsDouble(i);
        }
    }

    private static void both(double[] d, double[] e, java.util.function.IntToDoubleFunction entry) {
        fill(d, entry);
        fill(e, entry);
    }

    private static void graded(double[] d, double[] e, Random random, double first, double last) {
        double step = (last - first) / (2 * d.length);
        fill(d, i -> Math.pow(2, first + step * 2 * i) * (1 + random.nextDouble()));
        fill(e, i -> Math.pow(2, first + step * (2 * i + 1)) * (1 + random.nextDouble()));
    }
}
