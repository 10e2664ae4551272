package io.millrace.formats;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF3;

/** The only JSON object of a text, as {@link JsonRecords} returns it; null if the text is not one object. */
public final class JsonRecord implements UDF3<String, String, Boolean, Row> {

    private final JsonRecords records = new JsonRecords();

    @Override
    public Row call(String text, String fields, Boolean anyCase) throws IOException {
        List<Row> rows = records.call(text, fields, anyCase);
        return rows != null && rows.size() == 1 ? rows.get(0) : null;
    }
}
