package io.millrace.formats;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.api.java.UDF2;

/** The text of a decimal with more digits than Spark's decimals have. */
public final class WideDecimal implements UDF2<byte[], Integer, String> {

    /**
     * Reads a decimal as Avro and Parquet store it.
     *
     * @param stored the number without its point, as a big-endian two's complement
     * @param scale the digits after the point
     * @return the number with all its digits, without an exponent; null for null
     */
    @Override
    public String call(byte[] stored, Integer scale) {
        return stored == null ? null : new BigDecimal(new BigInteger(stored), scale).toPlainString();
    }
}
