package tsvd.internal;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * The BLAS of a library that is not linked with one, as the bundled one is not: the file that the
 * property tsvd.blas names, or else OpenBLAS or the reference BLAS of the system.
 */
public final class Blas {
    private static final List<String> NAMES =
            List.of("libopenblas.so.0", "libblas.so.3", "libmkl_rt.so.2");
    private static final String[] PRODUCTS = {"dgemm", "sgemm", "zgemm", "cgemm"};
    private static final long TABLE = table(Native.get());

    private Blas() {
    }

    /**
     * A tsvd_blas for a configuration.
     *
     * @return its address; 0: the library has one, or there is none
     */
    public static long address() {
        return TABLE;
    }

    private static long table(Native api) {
        String given = System.getProperty("tsvd.blas");
        if (given == null && api.hasBlas() != 0) {
            return 0;
        }
        for (String library : given != null ? List.of(given) : NAMES) {
            if (api.symbol(library, "dgemm_") != 0) {
                return fill(api, library);
            }
        }
        if (given != null && !given.isEmpty()) {
            throw new UnsatisfiedLinkError("the property tsvd.blas names " + given
                    + ", which has no function dgemm_ or cannot be opened");
        }
        return 0;
    }

    /** Handles copy the table; this one lives as long as the process. */
    private static long fill(Native api, String library) {
        long address = api.allocate(Structs.BLAS.size());
        ByteBuffer table = api.view(address, Structs.BLAS.size());
        for (int i = 0; i < Structs.BLAS.size(); i += Long.BYTES) {
            table.putLong(i, 0);
        }
        table.putLong(Structs.BLAS.offset("size"), Structs.BLAS.size());
        for (String product : PRODUCTS) {
            table.putLong(Structs.BLAS.offset(product + "32"), api.symbol(library, product + "_"));
        }
        return address;
    }
}
