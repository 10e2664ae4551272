package io.millrace.formats;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.api.java.UDF2;

/** A number's text as the double, or float, that gives the text again if it is written with as many digits. */
public final class ExactDouble implements UDF2<String, Boolean, Double> {

    /** The longest double has 1,075 characters. A longer text would take too long to read. */
    private static final int MOST_CHARACTERS = 1200;

    private static final Set<String> INFINITE = Set.of("inf", "infinity", "+inf", "+infinity", "-inf", "-infinity");

    /**
     * Reads a number.
     *
     * @param text the number: digits, with a sign, a point and an exponent if need be, and blanks around it; or NaN, or
     *     infinity, as Spark writes and reads them
     * @param isFloat whether the result must be a float
     * @return the nearest double or float; null for another text, or if the text has digits that it does not have
     */
    @Override
    public Double call(String text, Boolean isFloat) {
        if (text == null || text.length() > MOST_CHARACTERS) {
            return null;
        }
        String small = text.strip().toLowerCase(Locale.ROOT);
        if (small.equals("nan")) {
            return Double.NaN;
        }
        if (INFINITE.contains(small)) {
            return small.startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
        }
        try {
            // Not parseDouble alone: it takes 10d and 0x1p3 for numbers, which are none in any source.
            BigDecimal number = new BigDecimal(small);
            double nearest = isFloat ? number.floatValue() : number.doubleValue();
            String shortest = isFloat ? Float.toString((float) nearest) : Double.toString(nearest);
            return !Double.isInfinite(nearest) && has(nearest, shortest, number) ? nearest : null;
        } catch (NumberFormatException noNumber) {
            return null;
        }
    }

    private static boolean has(double nearest, String shortest, BigDecimal number) {
        if (nearest == 0 || number.signum() == 0) {
            return nearest == 0 && number.signum() == 0;
        }
        MathContext digits = new MathContext(number.precision(), RoundingMode.HALF_EVEN);
        return new BigDecimal(nearest).round(digits).compareTo(number) == 0
                || new BigDecimal(shortest).compareTo(number) == 0;
    }
}
