package io.millrace.formats;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A JSON object of texts by their paths; a path with several texts has a JSON array of them, as text. */
final class JsonObject {

    private final Map<String, List<String>> texts = new LinkedHashMap<>();

    /** Adds a text; null only stays where no other one is. */
    void add(String path, String text) {
        List<String> there = texts.computeIfAbsent(path, none -> new ArrayList<>(1));
        if (text != null) {
            there.remove(null);
        }
        if (there.isEmpty() || text != null && !there.contains(text)) {
            there.add(text);
        }
    }

    /** Returns the object as JSON; null if it has no field. */
    String json() throws IOException {
        if (texts.isEmpty()) {
            return null;
        }
        StringWriter out = new StringWriter();
        try (JsonGenerator generator = JsonTexts.FACTORY.createGenerator(out)) {
            generator.writeStartObject();
            for (Map.Entry<String, List<String>> field : texts.entrySet()) {
                List<String> values = field.getValue();
                generator.writeFieldName(field.getKey());
                generator.writeString(values.size() == 1 ? values.get(0) : array(values));
            }
            generator.writeEndObject();
        }
        return out.toString();
    }

    private static String array(List<String> values) throws IOException {
        StringWriter out = new StringWriter();
        try (JsonGenerator generator = JsonTexts.FACTORY.createGenerator(out)) {
            generator.writeArray(values.toArray(new String[0]), 0, values.size());
        }
        return out.toString();
    }
}
