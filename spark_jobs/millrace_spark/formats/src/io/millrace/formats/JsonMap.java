package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.api.java.UDF2;

/** All fields of one JSON object, with their texts. */
public final class JsonMap implements UDF2<String, Boolean, Map<String, String>> {

    /**
     * Takes an object apart.
     *
     * @param text the object
     * @param withCommas whether numbers in strings have commas, so that other numbers get a mark
     * @return field -> its text; null if the text is not one object, or has several texts of a field
     */
    @Override
    public Map<String, String> call(String text, Boolean withCommas) {
        List<Map.Entry<String, String>> fields = read(text, withCommas, false);
        if (fields == null) {
            return null;
        }
        Map<String, String> last = last(fields);
        return last.entrySet().containsAll(fields) ? last : null;
    }

    /** Returns each field with the last of its texts. */
    static Map<String, String> last(List<Map.Entry<String, String>> fields) {
        Map<String, String> texts = new LinkedHashMap<>();
        fields.forEach(field -> texts.put(field.getKey(), field.getValue()));
        return texts;
    }

    /**
     * Returns all fields of an object, if need be with strings that UTF-8 cannot hold, as JSON writes them; null for
     * what {@code call} takes for none.
     */
    static List<Map.Entry<String, String>> read(String text, boolean withCommas, boolean keepsHalves) {
        if (text == null) {
            return null;
        }
        List<Map.Entry<String, String>> texts = new ArrayList<>();
        try (JsonParser parser = JsonTexts.FACTORY.createParser(text)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                parser.nextToken();
                if (!keepsHalves && (JsonTexts.isHalf(name) || JsonTexts.isHalf(parser))) {
                    return null;
                }
                texts.add(new SimpleEntry<>(name, withCommas ? JsonTexts.marked(parser) : JsonTexts.of(parser)));
            }
            return parser.nextToken() == null ? texts : null;
        } catch (IOException malformed) {
            return null;
        }
    }
}
