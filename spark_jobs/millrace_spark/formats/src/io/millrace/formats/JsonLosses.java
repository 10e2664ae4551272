package io.millrace.formats;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.api.java.UDF4;

/** The parts of a received JSON value that the stored value does not have. */
public final class JsonLosses implements UDF4<String, String, String, String, String> {

    /**
     * Compares what was received with what is stored.
     *
     * @param received the value as JSON
     * @param stored the stored value as JSON, in which each part that does not fit its type is null
     * @param path the path of the value in its record
     * @param nulls JSON array of the texts that mean that there is no value
     * @return JSON object: path of each part that is null only in the stored value, or that it does not have -> its
     *     text; null for none. Of a field that is there several times, only the last value is stored.
     */
    @Override
    public String call(String received, String stored, String path, String nulls) throws IOException {
        JsonObject losses = new JsonObject();
        compare(path, received, stored, JsonList.read(nulls, false, true), losses);
        return losses.json();
    }

    private static void compare(
            String path, String received, String stored, List<String> nulls, JsonObject losses) {
        // A stored text that looks like JSON is the text that was received.
        if (received == null || Objects.equals(received, stored) || (stored == null && nulls.contains(received))) {
            return;
        }
        if (stored == null) {
            losses.add(path, received);
        } else if (stored.startsWith("{")) {
            Map<String, String> parts = JsonMap.last(JsonMap.read(stored, false, true));
            List<Map.Entry<String, String>> all = JsonMap.read(received, false, true);
            Map<String, String> last = JsonMap.last(all);
            for (Map.Entry<String, String> part : all) {
                String below = path + "." + JsonTexts.step(part.getKey());
                if (!Objects.equals(part.getValue(), last.get(part.getKey()))) {
                    compare(below, part.getValue(), null, nulls, losses);
                } else if (parts.containsKey(part.getKey())) {
                    compare(below, part.getValue(), parts.get(part.getKey()), nulls, losses);
                } else {
                    losses.add(below, part.getValue());
                }
            }
        } else if (stored.startsWith("[")) {
            List<String> elements = JsonList.read(received, false, true);
            List<String> kept = JsonList.read(stored, false, true);
            for (int at = 0; at < elements.size(); at++) {
                compare(path + "[" + at + "]", elements.get(at), kept.get(at), nulls, losses);
            }
        }
    }
}
