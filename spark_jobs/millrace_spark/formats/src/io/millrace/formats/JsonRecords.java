package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
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
     * @param fields JSON array of the names of fields; if a field is in an object several times, its last value counts. A
     *     name in an array of its own is of a field whose numbers have commas in strings, so that other numbers get a mark.
     * @param anyCase whether names that differ only in upper and lower case are the same
     * @return a row for each object: the texts of the fields, in their order, and a JSON object of the other fields, by
     *     their names as steps of a path, null if there are none. A field whose text UTF-8 cannot hold, all fields that
     *     are one in any case, and the earlier values of a field, are in that. Null if the text is not that.
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
                records.add(record(parser, anyCase));
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

    private Row record(JsonParser parser, boolean anyCase) throws IOException {
        String[] texts = new String[places.size()], names = new String[places.size()];
        Set<Integer> ofSeveralNames = Set.of();
        JsonObject more = new JsonObject();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            parser.nextToken();
            String key = anyCase ? small(name) : name;
            boolean isHalf = JsonTexts.isHalf(parser);
            boolean hasCommas = withCommas.contains(key);
            String text = hasCommas ? JsonTexts.marked(parser) : JsonTexts.of(parser);
            Integer place = places.get(key);
            if (place == null) {
                more.add(JsonTexts.step(name), text);
                continue;
            }
            boolean isOther = anyCase && names[place] != null && !names[place].equals(name);
            if (isOther) {
                ofSeveralNames = new HashSet<>(ofSeveralNames);
                ofSeveralNames.add(place);
            }
            boolean isOfColumn = !isHalf && !ofSeveralNames.contains(place);
            String earlier = texts[place];
            if (isOther || earlier != null && !(isOfColumn && earlier.equals(text))) {
                more.add(JsonTexts.step(names[place]), hasCommas ? JsonTexts.unmarked(earlier) : earlier);
            }
            names[place] = name;
            texts[place] = isOfColumn ? text : null;
            if (!isOfColumn) {
                more.add(JsonTexts.step(name), hasCommas ? JsonTexts.unmarked(text) : text);
            }
        }
        return RowFactory.create(texts, more.json());
    }

    private static String small(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
