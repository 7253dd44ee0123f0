package tsvd;

import java.util.Arrays;

/**
 * The shapes of results, and arrays for them. Where arguments do not fit together any shape will
 * do: the library says so.
 */
final class Shapes {
    private Shapes() {
    }

    /** For values first .. first + count - 1 of bidiagonal matrices. */
    static Svd bidiagonal(NDArray d, NDArray e, Options o, long first, long count) {
        long n = last(d, 1);
        long extra = n > 0 && last(e, 1) == n ? 1 : 0;
        long k = count(n, first, count);
        long below = o.lower ? extra : 0;
        long beside = o.lower ? 0 : extra;
        boolean full = o.vectors == Vectors.FULL;
        return results(d.dtype, batch(d, e), o, n + below, full ? k + below : k, k,
                full ? k + beside : k, n + beside);
    }

    /** For values first .. first + count - 1 of dense matrices. */
    static Svd dense(NDArray a, Options o, long first, long count) {
        long m = last(a, 2);
        long n = last(a, 1);
        long k = count(Math.min(m, n), first, count);
        boolean full = o.vectors == Vectors.FULL;
        return results(a.dtype, batch(a), o, m, full ? m : k, k, full ? n : k, n);
    }

    /** For the inverses of matrices. */
    static NDArray inverse(NDArray a) {
        return array(a.dtype, a.shape);
    }

    private static Svd results(DType dtype, long[] batch, Options o, long rows, long left, long k,
            long right, long columns) {
        NDArray s = array(dtype.ofValues(), with(batch, k));
        if (o.vectors == Vectors.NONE) {
            return new Svd(null, s, null, null);
        }
        return new Svd(array(dtype, with(batch, rows, left)), s,
                array(dtype, with(batch, right, columns)), null);
    }

    /** Entries along a dimension, counted from the end; 1 if it is missing. */
    private static long last(NDArray array, int i) {
        return i > array.shape.length ? 1 : array.shape[array.shape.length - i];
    }

    /** How many of n values are wanted; 0 if there are no such values. */
    private static long count(long n, long first, long count) {
        long k = count == -1 ? n - first : count;
        return first < 0 || k < 0 || k > n - first ? 0 : k;
    }

    private static long[] batch(NDArray a) {
        return Arrays.copyOf(a.shape, Math.max(a.shape.length - 2, 0));
    }

    /** The batch dimensions of d and e, broadcast. */
    private static long[] batch(NDArray d, NDArray e) {
        long[] batch = new long[Math.max(d.shape.length, e.shape.length) - 1];
        for (int i = 0; i < batch.length; i++) {
            long of = last(d, batch.length - i + 1);
            batch[i] = of == 1 ? last(e, batch.length - i + 1) : of;
        }
        return batch;
    }

    private static long[] with(long[] batch, long... more) {
        long[] shape = Arrays.copyOf(batch, batch.length + more.length);
        System.arraycopy(more, 0, shape, batch.length, more.length);
        return shape;
    }

    private static NDArray array(DType dtype, long[] shape) {
        long numbers = dtype.parts;
        for (long entries : shape) {
            numbers = entries == 0 ? 0 : Math.multiplyHigh(numbers, entries) != 0 ? Long.MAX_VALUE
                    : numbers * entries;
            if (numbers == 0) {
                break;
            }
        }
        if (numbers < 0 || numbers > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("a result of the shape " + Arrays.toString(shape)
                    + " has more numbers than a Java array: give memory segments to into()");
        }
        Storage storage = dtype.realBytes == Double.BYTES
                ? new Storage.Doubles(new double[(int) numbers])
                : new Storage.Floats(new float[(int) numbers]);
        return NDArray.of(storage, dtype.parts == 2, shape);
    }
}
