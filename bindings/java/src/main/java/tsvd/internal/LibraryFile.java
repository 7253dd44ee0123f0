package tsvd.internal;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** Finds the shared library, and for a back end opens it. */
public final class LibraryFile {
    private LibraryFile() {
    }

    /** The folder of this machine in the jar, such as linux-x86-64. */
    private static final String PLATFORM = System.getProperty("os.name").toLowerCase(Locale.ROOT)
            + "-" + switch (System.getProperty("os.arch")) {
                case "amd64", "x86_64" -> "x86-64";
                default -> System.getProperty("os.arch");
            };

    /** What a back end does with the file that was found. */
    interface Opener<T> {
        T open(Path file);
    }

    /**
     * Opens the library: the file that the property tsvd.library names, or else the first
     * libtsvd.so of java.library.path, or else the one in the jar.
     */
    static <T> T open(Opener<T> opener) {
        String given = System.getProperty("tsvd.library");
        if (given != null) {
            return opener.open(Path.of(given).toAbsolutePath());
        }
        String name = System.mapLibraryName("tsvd");
        String path = System.getProperty("java.library.path", "");
        for (String folder : path.split(File.pathSeparator)) {
            Path file = Path.of(folder.isEmpty() ? "." : folder, name).toAbsolutePath();
            if (Files.exists(file)) {
                return opener.open(file);
            }
        }
        String inJar = "/tsvd/native/" + PLATFORM + "/" + name;
        try (InputStream bundled = LibraryFile.class.getResourceAsStream(inJar)) {
            if (bundled == null) {
                throw new UnsatisfiedLinkError("the library of tsvd was not found: there is no "
                        + name + " in java.library.path (" + path + "), and no " + inJar
                        + " in the jar; the property tsvd.library may name the file");
            }
            Path copy = Files.createTempFile("libtsvd", ".so");
            try {
                Files.copy(bundled, copy, StandardCopyOption.REPLACE_EXISTING);
                return opener.open(copy);
            } finally {
                Files.delete(copy); // what is open stays
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the library of tsvd could not be unpacked", e);
        }
    }
}
