package io.millrace.formats;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.api.java.UDF1;

/**
 * The elements of one JSON array, each with exactly the bytes that it has there: no number goes through a double.
 *
 * <p>Spark's {@code from_json} writes elements anew, and so loses digits.
 */
public final class JsonElements implements UDF1<byte[], List<byte[]>> {

    private static final int ANY = Integer.MAX_VALUE;

    /** Lenient where Python's parser is, which has looked at the file before; records are judged one by one later. */
    private static final JsonFactory FACTORY = JsonFactory.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNestingDepth(ANY)
                    .maxNumberLength(ANY)
                    .maxStringLength(ANY)
                    .maxNameLength(ANY)
                    .build())
            .build();

    /**
     * Takes an array apart.
     *
     * @return its elements as UTF-8; null if the text is not one array from its start to its end
     */
    @Override
    public List<byte[]> call(byte[] array) {
        List<byte[]> elements = new ArrayList<>();
        try (JsonParser parser = FACTORY.createParser(array)) {
            boolean isArray = parser.nextToken() == JsonToken.START_ARRAY;
            if (!isArray || !isUtf8(parser)) {
                return null;
            }
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                elements.add(element(array, parser));
            }
            return parser.nextToken() == null ? elements : null;
        } catch (IOException malformed) {
            return null;
        }
    }

    /** Of other encodings Jackson tells no byte offsets. */
    private static boolean isUtf8(JsonParser parser) {
        return parser.currentTokenLocation().getByteOffset() >= 0;
    }

    private static byte[] element(byte[] array, JsonParser parser) throws IOException {
        int start = (int) parser.currentTokenLocation().getByteOffset();
        parser.skipChildren();
        parser.finishToken();
        return Arrays.copyOfRange(array, start, (int) parser.currentLocation().getByteOffset());
    }
}
