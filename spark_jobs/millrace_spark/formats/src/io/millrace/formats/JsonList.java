package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.api.java.UDF2;

/** The elements of one JSON array, as texts. */
public final class JsonList implements UDF2<String, Boolean, List<String>> {

    /**
     * Takes an array apart.
     *
     * @param text the array
     * @param withCommas whether numbers in strings have commas, so that other numbers get a mark
     * @return the texts of its elements; null if the text is not one array, or has a string that UTF-8 cannot hold
     */
    @Override
    public List<String> call(String text, Boolean withCommas) {
        return read(text, withCommas, false);
    }

    /** Returns what {@code call} returns, if need be with strings that UTF-8 cannot hold, as JSON writes them. */
    static List<String> read(String text, boolean withCommas, boolean keepsHalves) {
        if (text == null) {
            return null;
        }
        List<String> texts = new ArrayList<>();
        try (JsonParser parser = JsonTexts.FACTORY.createParser(text)) {
            if (parser.nextToken() != JsonToken.START_ARRAY) {
                return null;
            }
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                if (!keepsHalves && JsonTexts.isHalf(parser)) {
                    return null;
                }
                texts.add(withCommas ? JsonTexts.marked(parser) : JsonTexts.of(parser));
            }
            return parser.nextToken() == null ? texts : null;
        } catch (IOException malformed) {
            return null;
        }
    }
}
