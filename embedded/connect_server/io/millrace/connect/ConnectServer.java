package io.millrace.connect;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connect.service.SparkConnectService;
import org.apache.spark.sql.connect.service.SparkConnectService$;

/**
 * A Spark Connect server whose sessions share their compiled code.
 *
 * <p>Spark's own main class gives every session a class loader of its own, for jars that a client may add, and Spark
 * keeps generated code by class loader: each session compiles everything anew, a third of what a small batch costs.
 * Millrace's clients add no jars. This main class is Spark's without that setting
 * ({@code spark.sql.artifact.isolation.enabled}, which it would set over any other).
 */
public final class ConnectServer {

    private ConnectServer() {}

    /** Serves until the process is told to end; address and port are settings of Spark Connect. */
    public static void main(String[] arguments) throws InterruptedException {
        SparkSession session = SparkSession.builder().getOrCreate();
        SparkConnectService.start(session.sparkContext());
        SparkConnectService$.MODULE$.server().awaitTermination();
        session.stop();
    }
}
