package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.api.java.UDF2;

/** All fields of one JSON object, with their texts. */
public final class JsonMap implements UDF2<String, Boolean, Map<String, String>> {

    /**
     * Takes an object apart.
     *
     * @param text the object
     * @param withCommas whether numbers in strings have commas, so that other numbers get a mark
     * @return field -> its text, of a field that is there twice the last; null if the text is not one object
     */
    @Override
    public Map<String, String> call(String text, Boolean withCommas) {
        return read(text, withCommas, false);
    }

    /** Returns what {@code call} returns, if need be with strings that UTF-8 cannot hold, as JSON writes them. */
    static Map<String, String> read(String text, boolean withCommas, boolean keepsHalves) {
        if (text == null) {
            return null;
        }
        Map<String, String> texts = new LinkedHashMap<>();
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
                texts.put(name, withCommas ? JsonTexts.marked(parser) : JsonTexts.of(parser));
            }
            return parser.nextToken() == null ? texts : null;
        } catch (IOException malformed) {
            return null;
        }
    }
}
