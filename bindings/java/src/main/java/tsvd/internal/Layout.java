package tsvd.internal;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Where the fields of a C structure lie on machines of 64 bits, where each number is aligned to its
 * size. A test compares the structures of {@link Structs} with those of the C compiler.
 */
public final class Layout {
    /** The name in C. */
    public final String name;
    private final Map<String, Integer> offsets = new LinkedHashMap<>();
    private int end;
    private int alignment = 1;

    Layout(String name) {
        this.name = name;
    }

    /** Appends int, and what has its size: enumerations. */
    Layout ints(String... names) {
        for (String field : names) {
            append(field, 4, 4);
        }
        return this;
    }

    /** Appends int64_t, and what has its size: size_t, double and pointers. */
    Layout longs(String... names) {
        for (String field : names) {
            append(field, 8, 8);
        }
        return this;
    }

    /** Appends an array of {@code count} numbers of {@code bytes} each. */
    Layout array(String field, int bytes, int count) {
        append(field, bytes, bytes * count);
        return this;
    }

    private void append(String field, int aligned, int bytes) {
        end = (end + aligned - 1) / aligned * aligned;
        alignment = Math.max(alignment, aligned);
        offsets.put(field, end);
        end += bytes;
    }

    /**
     * Bytes of the structure.
     *
     * @return what sizeof gives
     */
    public int size() {
        return (end + alignment - 1) / alignment * alignment;
    }

    /**
     * Where a field lies.
     *
     * @param field its name in C
     * @return bytes from the beginning
     */
    public int offset(String field) {
        return offsets.get(field);
    }

    /**
     * The fields in their order.
     *
     * @return name to offset
     */
    public Map<String, Integer> offsets() {
        return Map.copyOf(offsets);
    }
}
