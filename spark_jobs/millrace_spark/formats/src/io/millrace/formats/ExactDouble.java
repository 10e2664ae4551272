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
        if (text == null || text.length() > MOST_CHARACTERS || !ExactDecimal.isAscii(text)) {
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
            if (number.signum() == 0) {
                return small.startsWith("-") ? -0.0 : 0.0; // a decimal has no sign of zero
            }
            double nearest = nearest(number, isFloat);
            return nearest != 0 && !Double.isInfinite(nearest) && has(nearest, number, isFloat) ? nearest : null;
        } catch (NumberFormatException noNumber) {
            return null;
        }
    }

    private static double nearest(BigDecimal number, boolean isFloat) {
        return isFloat ? number.floatValue() : number.doubleValue();
    }

    private static boolean has(double nearest, BigDecimal number, boolean isFloat) {
        BigDecimal exact = new BigDecimal(nearest);
        if (rounded(exact, number.precision()).compareTo(number) == 0) {
            return true;
        }
        // The shortest text, as of 1735689600000 as a float. Java 17 writes some with a digit more than they need.
        int digits = number.stripTrailingZeros().precision();
        return rounded(exact, digits).compareTo(number) == 0
                && (digits == 1 || nearest(rounded(exact, digits - 1), isFloat) != nearest);
    }

    private static BigDecimal rounded(BigDecimal number, int digits) {
        return number.round(new MathContext(digits, RoundingMode.HALF_EVEN));
    }
}
