package io.millrace.formats;

import java.io.IOException;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;

/** All fields of the only JSON object of a text, with their texts; null if the text is not one object. */
public final class JsonMap implements UDF1<String, Map<String, String>> {

    private final JsonRecord record = new JsonRecord();

    @Override
    public Map<String, String> call(String text) throws IOException {
        Row fields = record.call(text, "[]", false);
        if (fields == null) {
            return null;
        }
        return fields.isNullAt(1) ? Map.of() : fields.getAs(1);
    }
}
