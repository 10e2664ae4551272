package io.millrace.formats;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import org.apache.spark.sql.api.java.UDF4;

/** A number's text as the text of a decimal that has exactly its value, or one that is rounded as the caller says. */
public final class ExactDecimal implements UDF4<String, Integer, Integer, String, String> {

    /** More digits than any type of Spark holds: a text of a few characters, such as 1e999999999, may stand for them. */
    private static final int MOST_DIGITS = 500;

    /**
     * Reads a number.
     *
     * @param text the number: digits, with a sign, a point and an exponent if need be, and blanks around it
     * @param power the power of ten by which it is multiplied
     * @param scale the digits after the point that the result may have
     * @param rounding `unnecessary`, or how further digits are rounded, as {@link RoundingMode} names it, in small letters
     * @return the result without an exponent; null for another text, or if digits would have to be rounded and must not
     */
    @Override
    public String call(String text, Integer power, Integer scale, String rounding) {
        if (text == null || text.length() > MOST_DIGITS || !isAscii(text)) {
            return null;
        }
        try {
            BigDecimal number = new BigDecimal(text.strip()).scaleByPowerOfTen(power);
            if (number.signum() == 0) {
                return "0";
            }
            long digitsBeforePoint = (long) number.precision() - number.scale();
            if (digitsBeforePoint > MOST_DIGITS) {
                return null;
            }
            if (digitsBeforePoint < -MOST_DIGITS) {
                number = BigDecimal.valueOf(number.signum(), MOST_DIGITS); // which any mode rounds alike, but faster
            }
            return number.setScale(scale, RoundingMode.valueOf(rounding.toUpperCase(Locale.ROOT))).toPlainString();
        } catch (ArithmeticException | NumberFormatException inexact) {
            return null;
        }
    }

    /** Returns whether a text has no character of another script: Java takes all digits for those of a number. */
    static boolean isAscii(String text) {
        return text.chars().allMatch(character -> character < 128);
    }
}
