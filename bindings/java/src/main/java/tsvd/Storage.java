package tsvd;

import java.nio.Buffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Objects;
import tsvd.internal.Native;

/** The numbers of an array: in a Java array, which calls copy, or in native memory. */
abstract class Storage {
    /** Bytes of a number: 8 or 4. */
    abstract int bytes();

    /** How many numbers there are. */
    abstract long size();

    /** A number. */
    abstract double get(long index);

    /** Where the first number lies; 0: in a Java array. Asked for at each call. */
    long address() {
        return 0;
    }

    boolean readOnly() {
        return false;
    }

    /** The Java array, a double[] or float[]; else null. */
    Object array() {
        return null;
    }

    static final class Doubles extends Storage {
        private final double[] numbers;

        Doubles(double[] numbers) {
            this.numbers = Objects.requireNonNull(numbers);
        }

        @Override
        int bytes() {
            return Double.BYTES;
        }

        @Override
        long size() {
            return numbers.length;
        }

        @Override
        double get(long index) {
            return numbers[(int) index];
        }

        @Override
        Object array() {
            return numbers;
        }
    }

    static final class Floats extends Storage {
        private final float[] numbers;

        Floats(float[] numbers) {
            this.numbers = Objects.requireNonNull(numbers);
        }

        @Override
        int bytes() {
            return Float.BYTES;
        }

        @Override
        long size() {
            return numbers.length;
        }

        @Override
        double get(long index) {
            return numbers[(int) index];
        }

        @Override
        Object array() {
            return numbers;
        }
    }

    /** A direct buffer, from its position to its limit. */
    static final class Direct extends Storage {
        private final Buffer buffer; // a slice, whose position nobody moves; it keeps the memory
        private final int bytes;
        private final long address;

        Direct(DoubleBuffer buffer) {
            this(buffer.slice(), buffer.order(), Double.BYTES);
        }

        Direct(FloatBuffer buffer) {
            this(buffer.slice(), buffer.order(), Float.BYTES);
        }

        private Direct(Buffer buffer, ByteOrder order, int bytes) {
            if (!buffer.isDirect() || order != ByteOrder.nativeOrder()) {
                throw new IllegalArgumentException(
                        "the buffer must be direct, and of the machine's byte order");
            }
            this.buffer = buffer;
            this.bytes = bytes;
            address = Native.get().address(buffer);
        }

        @Override
        int bytes() {
            return bytes;
        }

        @Override
        long size() {
            return buffer.limit();
        }

        @Override
        double get(long index) {
            return buffer instanceof DoubleBuffer doubles ? doubles.get((int) index)
                    : ((FloatBuffer) buffer).get((int) index);
        }

        @Override
        long address() {
            return address;
        }

        @Override
        boolean readOnly() {
            return buffer.isReadOnly();
        }
    }
}
