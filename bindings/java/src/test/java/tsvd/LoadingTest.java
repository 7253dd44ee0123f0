package tsvd;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a process is told whose library cannot be loaded: each in a JVM of its own. */
class LoadingTest {
    /** Prints what goes wrong. */
    public static final class Main {
        public static void main(String[] args) {
            try {
                System.out.println(Svd.values(new double[] {2}, new double[0])[0]);
            } catch (LinkageError e) {
                System.out.println(e + " " + e.getCause());
            }
        }
    }

    private static String run(String... properties) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("surefire.test.class.path",
                        System.getProperty("java.class.path")),
                "-Dtsvd.backend=" + Tsvd.backEnd(),
                "-Djava.library.path=" + System.getProperty("java.library.path")));
        command.addAll(List.of(properties));
        command.add(Main.class.getName());
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return said;
    }

    @Test
    void librariesThatAreMissing(@TempDir Path folder) throws Exception {
        String missing = folder.resolve("libtsvd.so").toString();
        String said = run("-Dtsvd.library=" + missing);
        assertTrue(said.contains("UnsatisfiedLinkError") && said.contains(missing), said);

        said = run("-Dtsvd.library=" + Files.writeString(folder.resolve("text.so"), "no library"));
        assertTrue(said.contains("UnsatisfiedLinkError"), said);

        said = run("-Dtsvd.blas=" + missing);
        assertTrue(said.contains("UnsatisfiedLinkError") && said.contains("tsvd.blas"), said);
    }

    @Test
    void librariesWithoutTheFunctions() throws Exception {
        String said = run("-Dtsvd.library=" + libc());
        assertTrue(said.contains("UnsatisfiedLinkError") && said.contains("tsvd_"), said);
    }

    private static String libc() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).stream()
                .filter(line -> line.contains("libc.so") || line.contains("libc-"))
                .map(line -> line.substring(line.indexOf('/'))).findFirst().orElseThrow();
    }

    @Test
    void backEnds() throws Exception {
        assertTrue(run("-Dtsvd.backend=other").contains("IllegalArgumentException"));
        assertTrue(run().contains("2.0"));
    }
}
