package tsvd;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import tsvd.internal.Structs;

/**
 * Numbers of the caller's with a shape: a vector (n), a matrix (rows, columns), or a batch of them
 * with further dimensions in front. It refers to the numbers, and copies none.
 *
 * <p>Numbers in a {@code double[]} or {@code float[]} are copied to native memory by each call, and
 * results from there. Those in a direct buffer, or in a native memory segment ({@code
 * Segments.of}), are read and written in place.
 *
 * <p>Unless {@link #strided} says something else the last index runs fastest: entry (i, j) of a
 * matrix is number {@code i * columns + j}. A complex entry is two numbers, its real part and its
 * imaginary part.
 */
public final class NDArray {
    final Storage storage;
    final DType dtype;
    /** The entry with all indices 0; in entries. */
    final long offset;
    final long[] shape;
    /** In entries. */
    final long[] strides;

    private NDArray(Storage storage, DType dtype, long offset, long[] shape, long[] strides) {
        this.storage = storage;
        this.dtype = dtype;
        this.offset = offset;
        this.shape = shape;
        this.strides = strides;
        if (shape.length < 1 || shape.length > Structs.MAX_DIMS) {
            throw new IllegalArgumentException(
                    "an array has 1 to " + Structs.MAX_DIMS + " dimensions, not " + shape.length);
        }
        for (long entries : shape) {
            if (entries < 0) {
                throw new IllegalArgumentException("a negative size: " + Arrays.toString(shape));
            }
        }
        long first = first();
        long end = end();
        if (first < 0 || end > storage.size() / dtype.parts) {
            throw new IllegalArgumentException("the shape " + Arrays.toString(shape)
                    + " has entries beyond the numbers, of which there are " + storage.size());
        }
    }

    static NDArray of(Storage storage, boolean complex, long[] shape) {
        DType dtype = DType.of(storage.bytes(), complex);
        long[] sizes =
                shape.length == 0 ? new long[] {storage.size() / dtype.parts} : shape.clone();
        long[] strides = new long[sizes.length];
        long stride = 1;
        for (int i = sizes.length - 1; i >= 0; i--) {
            strides[i] = stride;
            stride = exact(stride, Math.max(sizes[i], 1));
        }
        return new NDArray(storage, dtype, 0, sizes, strides);
    }

    private static long exact(long a, long b) {
        try {
            return Math.multiplyExact(a, b);
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException("the array has more entries than can be addressed");
        }
    }

    /**
     * Double numbers.
     *
     * @param numbers as many as the shape has entries, or more
     * @param shape without it: one dimension
     * @return an array of {@link DType#FLOAT64}
     */
    public static NDArray of(double[] numbers, long... shape) {
        return of(new Storage.Doubles(numbers), false, shape);
    }

    /**
     * Float numbers.
     *
     * @param numbers as many as the shape has entries, or more
     * @param shape without it: one dimension
     * @return an array of {@link DType#FLOAT32}
     */
    public static NDArray of(float[] numbers, long... shape) {
        return of(new Storage.Floats(numbers), false, shape);
    }

    /**
     * Complex numbers in double precision.
     *
     * @param pairs a real part, its imaginary part, the next real part, ...
     * @param shape in complex entries; without it: one dimension
     * @return an array of {@link DType#COMPLEX128}
     */
    public static NDArray ofComplex(double[] pairs, long... shape) {
        return of(new Storage.Doubles(pairs), true, shape);
    }

    /**
     * Complex numbers in single precision.
     *
     * @param pairs a real part, its imaginary part, the next real part, ...
     * @param shape in complex entries; without it: one dimension
     * @return an array of {@link DType#COMPLEX64}
     */
    public static NDArray ofComplex(float[] pairs, long... shape) {
        return of(new Storage.Floats(pairs), true, shape);
    }

    /**
     * Double numbers in native memory, from the buffer's position to its limit. They are not
     * copied.
     *
     * @param direct a direct buffer of the machine's byte order
     * @param shape without it: one dimension
     * @return an array of {@link DType#FLOAT64}
     */
    public static NDArray of(DoubleBuffer direct, long... shape) {
        return of(new Storage.Direct(direct), false, shape);
    }

    /**
     * Float numbers in native memory, from the buffer's position to its limit. They are not copied.
     *
     * @param direct a direct buffer of the machine's byte order
     * @param shape without it: one dimension
     * @return an array of {@link DType#FLOAT32}
     */
    public static NDArray of(FloatBuffer direct, long... shape) {
        return of(new Storage.Direct(direct), false, shape);
    }

    /**
     * Complex numbers in double precision in native memory. They are not copied.
     *
     * @param direct pairs in a direct buffer of the machine's byte order
     * @param shape in complex entries; without it: one dimension
     * @return an array of {@link DType#COMPLEX128}
     */
    public static NDArray ofComplex(DoubleBuffer direct, long... shape) {
        return of(new Storage.Direct(direct), true, shape);
    }

    /**
     * Complex numbers in single precision in native memory. They are not copied.
     *
     * @param direct pairs in a direct buffer of the machine's byte order
     * @param shape in complex entries; without it: one dimension
     * @return an array of {@link DType#COMPLEX64}
     */
    public static NDArray ofComplex(FloatBuffer direct, long... shape) {
        return of(new Storage.Direct(direct), true, shape);
    }

    /**
     * A matrix by its rows, which are copied now.
     *
     * @param rows of equal length
     * @return (rows, columns) of {@link DType#FLOAT64}
     */
    public static NDArray of(double[][] rows) {
        int columns = rows.length == 0 ? 0 : rows[0].length;
        double[] numbers = new double[Math.toIntExact((long) rows.length * columns)];
        for (int i = 0; i < rows.length; i++) {
            checkRow(i, rows[i].length, columns);
            System.arraycopy(rows[i], 0, numbers, i * columns, columns);
        }
        return of(numbers, rows.length, columns);
    }

    /**
     * A matrix by its rows, which are copied now.
     *
     * @param rows of equal length
     * @return (rows, columns) of {@link DType#FLOAT32}
     */
    public static NDArray of(float[][] rows) {
        int columns = rows.length == 0 ? 0 : rows[0].length;
        float[] numbers = new float[Math.toIntExact((long) rows.length * columns)];
        for (int i = 0; i < rows.length; i++) {
            checkRow(i, rows[i].length, columns);
            System.arraycopy(rows[i], 0, numbers, i * columns, columns);
        }
        return of(numbers, rows.length, columns);
    }

    private static void checkRow(int i, int length, int columns) {
        if (length != columns) {
            throw new IllegalArgumentException(
                    "row " + i + " has " + length + " entries, and row 0 has " + columns);
        }
    }

    /**
     * Another view of the same numbers. Results must not be strided.
     *
     * @param offset the index of the entry with all indices 0, in entries from the first number
     * @param shape entries along each dimension
     * @param strides entries from one to the next along each dimension; may be 0 or negative
     * @return a view, which lies within the numbers
     */
    public NDArray strided(long offset, long[] shape, long[] strides) {
        if (shape.length != strides.length) {
            throw new IllegalArgumentException("shape and strides have different lengths");
        }
        return new NDArray(storage, dtype, offset, shape.clone(), strides.clone());
    }

    /**
     * A view with the last two dimensions exchanged: for matrices that are stored by columns.
     *
     * @return for (..., m, n) an array (..., n, m) of the same numbers
     */
    public NDArray transposed() {
        int last = shape.length - 1;
        if (last < 1) {
            throw new IllegalArgumentException("an array of one dimension has no transpose");
        }
        long[] sizes = shape.clone();
        long[] steps = strides.clone();
        sizes[last] = shape[last - 1];
        sizes[last - 1] = shape[last];
        steps[last] = strides[last - 1];
        steps[last - 1] = strides[last];
        return new NDArray(storage, dtype, offset, sizes, steps);
    }

    /**
     * The type of the entries.
     *
     * @return never null
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Entries along each dimension.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Entries in all.
     *
     * @return their number
     */
    public long size() {
        long size = 1;
        for (long entries : shape) {
            if (entries == 0) {
                return 0;
            }
            size = exact(size, entries);
        }
        return size;
    }

    /**
     * An entry, of a complex array its real part.
     *
     * @param index one for each dimension
     * @return its value
     */
    public double get(long... index) {
        return storage.get(at(index) * dtype.parts);
    }

    /**
     * The imaginary part of an entry.
     *
     * @param index one for each dimension
     * @return 0 for arrays of real numbers
     */
    public double imaginary(long... index) {
        return dtype.parts == 1 ? 0 : storage.get(at(index) * 2 + 1);
    }

    private long at(long[] index) {
        if (index.length != shape.length) {
            throw new IllegalArgumentException("an index for each dimension is needed");
        }
        long at = offset;
        for (int i = 0; i < index.length; i++) {
            if (index[i] < 0 || index[i] >= shape[i]) {
                throw new IndexOutOfBoundsException(
                        "index " + index[i] + " of dimension " + i + ", which has " + shape[i]);
            }
            at += index[i] * strides[i];
        }
        return at;
    }

    /**
     * The numbers as the {@code double[]} in which they lie, the last index running fastest.
     * Results of calls without {@code into} lie in one.
     *
     * @return the array itself, not a copy
     * @throws IllegalStateException if they are float numbers, strided, or in native memory; then
     *     {@link #toDoubles} copies them
     */
    public double[] doubles() {
        if (storage.array() instanceof double[] numbers && isWhole()) {
            return numbers;
        }
        throw new IllegalStateException("the numbers are not the whole of a double[]: toDoubles()");
    }

    /**
     * The numbers as the {@code float[]} in which they lie; see {@link #doubles()}.
     *
     * @return the array itself, not a copy
     * @throws IllegalStateException if they lie in no such array
     */
    public float[] floats() {
        if (storage.array() instanceof float[] numbers && isWhole()) {
            return numbers;
        }
        throw new IllegalStateException("the numbers are not the whole of a float[]");
    }

    private boolean isWhole() {
        return offset == 0 && isContiguous() && size() * dtype.parts == storage.size();
    }

    private boolean isContiguous() {
        long stride = 1;
        for (int i = shape.length - 1; i >= 0; i--) {
            if (shape[i] != 1 && strides[i] != stride) {
                return size() == 0;
            }
            stride *= shape[i];
        }
        return true;
    }

    /**
     * A copy of the numbers as double, the last index running fastest.
     *
     * @return for complex arrays pairs
     */
    public double[] toDoubles() {
        double[] numbers = new double[Math.toIntExact(exact(size(), dtype.parts))];
        long[] index = new long[shape.length];
        for (int i = 0; i < numbers.length; i += dtype.parts) {
            long at = at(index) * dtype.parts;
            for (int part = 0; part < dtype.parts; part++) {
                numbers[i + part] = storage.get(at + part);
            }
            for (int k = index.length - 1; k >= 0 && ++index[k] == shape[k]; k--) {
                index[k] = 0;
            }
        }
        return numbers;
    }

    /**
     * A copy of a matrix as double, row by row.
     *
     * @return [rows][columns]
     * @throws IllegalStateException if it has not two dimensions, or is complex
     */
    public double[][] toRows() {
        if (shape.length != 2 || dtype.parts != 1) {
            throw new IllegalStateException("not a real matrix: " + this);
        }
        double[][] rows = new double[Math.toIntExact(shape[0])][Math.toIntExact(shape[1])];
        for (int i = 0; i < rows.length; i++) {
            for (int j = 0; j < rows[i].length; j++) {
                rows[i][j] = storage.get(offset + i * strides[0] + j * strides[1]);
            }
        }
        return rows;
    }

    /** The first entry that the array reaches, from the first number; 0 if it has none. */
    long first() {
        return reach(false);
    }

    /** The entry after the last one that it reaches; 0 if it has none. */
    long end() {
        return reach(true);
    }

    private long reach(boolean up) {
        long at = offset;
        for (int i = 0; i < shape.length; i++) {
            if (shape[i] == 0) {
                return 0;
            }
            if (strides[i] > 0 == up) {
                at = Math.addExact(at, exact(shape[i] - 1, strides[i]));
            }
        }
        return up ? Math.addExact(at, 1) : at;
    }

    /** The type and the shape. */
    @Override
    public String toString() {
        return dtype + Arrays.toString(shape);
    }
}
