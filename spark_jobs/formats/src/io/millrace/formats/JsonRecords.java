package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF3;

/** The JSON objects of a text, one after the other, each with its fields as texts. */
public final class JsonRecords implements UDF3<String, String, Boolean, List<Row>> {

    private String fields;
    private Map<String, Integer> places;
    private Set<String> withCommas;

    /**
     * Takes JSON objects apart.
     *
     * @param text the objects, with nothing but white space between them
     * @param fields JSON array of the names of fields; if a field is in an object twice, its last value counts. A name in an
     *     array of its own is of a field whose numbers have commas in strings, so that other numbers get a mark.
     * @param anyCase whether names that differ only in upper and lower case are the same
     * @return a row for each object: the texts of the fields, in their order, and a map of the other fields, by their
     *     names as steps of a path, null if there are none. A field whose text UTF-8 cannot hold, and all fields that are one in any case, are in the map.
     *     Null if the text is not that.
     */
    @Override
    public List<Row> call(String text, String fields, Boolean anyCase) throws IOException {
        if (text == null) {
            return null;
        }
        prepare(fields, anyCase);
        List<Row> records = new ArrayList<>(1);
        try (JsonParser parser = JsonTexts.FACTORY.createParser(text)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                if (token != JsonToken.START_OBJECT) {
                    return null;
                }
                records.add(anyCase ? recordOfAnyCase(parser) : record(parser));
            }
            return records;
        } catch (IOException malformed) {
            return null;
        }
    }

    /** Most calls of one function have the same fields. */
    private void prepare(String fields, boolean anyCase) throws IOException {
        if (fields.equals(this.fields)) {
            return;
        }
        places = new HashMap<>();
        withCommas = new HashSet<>();
        try (JsonParser parser = JsonTexts.FACTORY.createParser(fields)) {
            int depth = 0;
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                depth += token == JsonToken.START_ARRAY ? 1 : token == JsonToken.END_ARRAY ? -1 : 0;
                if (token == JsonToken.VALUE_STRING) {
                    String name = anyCase ? small(parser.getText()) : parser.getText();
                    places.put(name, places.size());
                    if (depth == 2) {
                        withCommas.add(name);
                    }
                }
            }
        }
        this.fields = fields;
    }

    private Row record(JsonParser parser) throws IOException {
        String[] texts = new String[places.size()];
        Map<String, String> more = null;
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            parser.nextToken();
            Integer place = places.get(name);
            boolean isHalf = JsonTexts.isHalf(parser);
            String text = withCommas.contains(name) ? JsonTexts.marked(parser) : JsonTexts.of(parser);
            if (place != null) {
                texts[place] = isHalf ? null : text;
            }
            if (place == null || isHalf) {
                more = more == null ? new LinkedHashMap<>() : more;
                more.put(JsonTexts.step(name), text);
            } else if (more != null) {
                more.remove(JsonTexts.step(name));
            }
        }
        return RowFactory.create(texts, more == null || more.isEmpty() ? null : more);
    }

    private Row recordOfAnyCase(JsonParser parser) throws IOException {
        Map<String, String> every = new LinkedHashMap<>();
        Set<String> halves = new HashSet<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            parser.nextToken();
            boolean changes = JsonTexts.isHalf(parser) ? halves.add(name) : halves.remove(name);
            boolean hasComma = withCommas.contains(small(name));
            every.put(name, hasComma ? JsonTexts.marked(parser) : JsonTexts.of(parser));
        }
        Map<String, Integer> times = new HashMap<>();
        every.keySet().forEach(name -> times.merge(small(name), 1, Integer::sum));
        String[] texts = new String[places.size()];
        Map<String, String> more = new LinkedHashMap<>();
        every.forEach((name, text) -> {
            Integer place = places.get(small(name));
            if (place == null || times.get(small(name)) > 1 || halves.contains(name)) {
                more.put(JsonTexts.step(name), text);
            } else {
                texts[place] = text;
            }
        });
        return RowFactory.create(texts, more.isEmpty() ? null : more);
    }

    private static String small(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
