package tsvd;

/**
 * Where to compute.
 *
 * @param number of the CUDA device, or -1 for the CPU
 */
public record Device(int number) {
    /** The CPU, the default. */
    public static final Device CPU = new Device(-1);

    /**
     * A device by its number.
     *
     * @param number -1 or more
     */
    public Device {
        if (number < -1) {
            throw new IllegalArgumentException("a device has a number >= 0, not " + number);
        }
    }

    /**
     * A CUDA device.
     *
     * @param number 0 for the first
     * @return the device; whether it can be used shows when it is
     */
    public static Device cuda(int number) {
        if (number < 0) {
            throw new IllegalArgumentException("a CUDA device has a number >= 0, not " + number);
        }
        return new Device(number);
    }

    @Override
    public String toString() {
        return number < 0 ? "cpu" : "cuda:" + number;
    }
}
