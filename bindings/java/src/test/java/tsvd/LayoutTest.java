package tsvd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tsvd.internal.Layout;
import tsvd.internal.Structs;

/** The structures and numbers of Java against the file of those that the C compiler makes. */
class LayoutTest {
    private static final Path FILE = Path.of("../../tests/abi/0.1/layout.txt");
    /** "struct NAME", "field NAME.FIELD" or "enum NAME" to its first number. */
    private static final Map<String, Integer> FACTS = new HashMap<>();

    @BeforeAll
    static void read() throws IOException {
        for (String line : Files.readAllLines(FILE)) {
            List<String> words = List.of(line.split(" "));
            if (!words.get(0).equals("function")) {
                FACTS.put(words.get(0) + " " + words.get(1), Integer.valueOf(words.get(2)));
            }
        }
    }

    @Test
    void structures() {
        for (Layout struct : Structs.ALL) {
            assertEquals(FACTS.get("struct " + struct.name), struct.size(), struct.name);
            String begin = "field " + struct.name + ".";
            Map<String, Integer> fields = FACTS.entrySet().stream()
                    .filter(fact -> fact.getKey().startsWith(begin)).collect(Collectors.toMap(
                            fact -> fact.getKey().substring(begin.length()), Map.Entry::getValue));
            assertEquals(fields, struct.offsets(), struct.name);
        }
        assertEquals(FACTS.get("enum TSVD_MAX_DIMS"), Structs.MAX_DIMS);
    }

    @Test
    void enumerators() {
        for (Status status : Status.values()) {
            if (status != Status.OK && status != Status.OTHER) {
                assertEquals(FACTS.get("enum TSVD_ERR_" + status), status.ordinal());
            }
        }
        for (Method method : Method.values()) {
            assertEquals(FACTS.get("enum TSVD_METHOD_" + method), method.ordinal());
        }
        for (DType dtype : DType.values()) {
            assertEquals(FACTS.get("enum TSVD_" + dtype), dtype.number());
        }
        assertEquals(FACTS.get("enum TSVD_HOST"), Frame.HOST);
        assertEquals(FACTS.get("enum TSVD_DEVICE_CPU"), Device.CPU.number());
        assertTrue(FACTS.size() > 100, "facts in " + FILE);
    }
}
