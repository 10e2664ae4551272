package io.millrace.connect;

import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
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

    private static final String PATIENCE = "spark.task.reaper.killTimeout";

    private ConnectServer() {}

    /**
     * Serves until the process is told to end; address and port are settings of Spark Connect.
     *
     * <p>A cancelled task that does not end within {@code spark.task.reaper.killTimeout} would keep its core for ever.
     * Then an executor of a cluster ends by itself (Spark's own reaper), and a server with tasks of its own ends here.
     */
    public static void main(String[] arguments) throws InterruptedException {
        SparkSession session = SparkSession.builder().getOrCreate();
        SparkContext context = session.sparkContext();
        LostTasks lost = new LostTasks();
        if (context.isLocal()) {
            context.addSparkListener(lost);
        }
        long patience = context.conf().getTimeAsMs(PATIENCE, "120s");
        SparkConnectService.start(context);
        while (!SparkConnectService$.MODULE$.server().awaitTermination(1, TimeUnit.SECONDS)) {
            if (lost.anyLongerThan(patience)) {
                System.err.println("A task did not end within " + patience / 1000 + " s after it was cancelled, and keeps"
                        + " its core: the server ends, to be started again. The lines above say what the task does.");
                Runtime.getRuntime().halt(1);
            }
        }
        session.stop();
    }
}
