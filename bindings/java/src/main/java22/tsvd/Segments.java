package tsvd;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Arrays in native memory segments, which calls read and write in place. From JDK 22 on.
 *
 * <p>The arena of a segment must not be closed while a call uses it, neither by another thread nor
 * by the call's listener: the C library has the address alone.
 */
public final class Segments {
    private Segments() {
    }

    /**
     * The numbers of a segment.
     *
     * @param segment native, aligned to the size of a number
     * @param dtype the type of its entries
     * @param shape without it: one dimension, of as many entries as the segment has
     * @return an array that refers to the segment
     */
    public static NDArray of(MemorySegment segment, DType dtype, long... shape) {
        return NDArray.of(new Segment(segment, dtype.realBytes), dtype.parts == 2, shape);
    }

    private static final class Segment extends Storage {
        private final MemorySegment segment;
        private final int bytes;

        Segment(MemorySegment segment, int bytes) {
            if (!segment.isNative()) {
                throw new IllegalArgumentException(
                        "the segment is of a Java array: give the array itself to NDArray.of()");
            }
            this.segment = segment;
            this.bytes = bytes;
        }

        @Override
        int bytes() {
            return bytes;
        }

        @Override
        long size() {
            return segment.byteSize() / bytes;
        }

        @Override
        double get(long index) {
            return bytes == Double.BYTES
                    ? segment.getAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, index)
                    : segment.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, index);
        }

        @Override
        long address() {
            if (!segment.scope().isAlive()) {
                throw new IllegalStateException("the arena of an array is closed");
            }
            if (!segment.isAccessibleBy(Thread.currentThread())) {
                throw new WrongThreadException("the arena of an array belongs to another thread");
            }
            return segment.address();
        }

        @Override
        boolean readOnly() {
            return segment.isReadOnly();
        }
    }
}
