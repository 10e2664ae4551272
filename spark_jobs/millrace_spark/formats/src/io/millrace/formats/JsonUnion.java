package io.millrace.formats;

import com.fasterxml.jackson.core.JsonParser;
import java.io.IOException;
import org.apache.spark.sql.api.java.UDF1;

/** One JSON object of the fields of several ones. */
public final class JsonUnion implements UDF1<String, String> {

    /**
     * Puts objects together.
     *
     * @param objects JSON objects of texts, one after the other
     * @return an object with each name once: one with several texts has a JSON array of them; null for no field
     */
    @Override
    public String call(String objects) throws IOException {
        JsonObject union = new JsonObject();
        try (JsonParser parser = JsonTexts.FACTORY.createParser(objects)) {
            while (parser.nextToken() != null) {
                while (parser.nextFieldName() != null) {
                    String name = parser.currentName();
                    parser.nextToken();
                    union.add(name, JsonTexts.of(parser));
                }
            }
        }
        return union.json();
    }
}
