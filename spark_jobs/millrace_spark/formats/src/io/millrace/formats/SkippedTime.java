package io.millrace.formats;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.time.temporal.TemporalAccessor;
import java.time.temporal.TemporalQueries;
import java.util.Locale;
import org.apache.spark.sql.api.java.UDF2;

/** Whether the clock of a text's own time zone skips its time: Spark takes a later one for it. */
public final class SkippedTime implements UDF2<String, String, Boolean> {

    private String pattern;
    private DateTimeFormatter formatter;

    /**
     * Looks at a time that Spark reads.
     *
     * @param text the time
     * @param pattern how it is written, with a zone
     */
    @Override
    public Boolean call(String text, String pattern) {
        if (text == null) {
            return null;
        }
        if (!pattern.equals(this.pattern)) {
            this.pattern = pattern;
            formatter = new DateTimeFormatterBuilder()
                    .parseCaseInsensitive()
                    .appendPattern(pattern)
                    .parseDefaulting(ChronoField.MINUTE_OF_HOUR, 0)
                    .toFormatter(Locale.US);
        }
        try {
            TemporalAccessor parsed = formatter.parse(text);
            LocalDate day = parsed.query(TemporalQueries.localDate());
            LocalTime time = parsed.query(TemporalQueries.localTime());
            ZoneId zone = parsed.query(TemporalQueries.zone());
            return zone != null && zone.getRules().getValidOffsets(day.atTime(time == null ? LocalTime.MIN : time)).isEmpty();
        } catch (DateTimeException noTime) {
            return true;
        }
    }
}
