package io.millrace.connect;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * The tasks that run on after their stage has failed or was cancelled.
 *
 * <p>Spark interrupts the thread of such a task. Code that never looks whether it was interrupted, such as an endless
 * loop within one record, keeps its core until the process ends.
 */
final class LostTasks extends SparkListener {

    private final Map<Long, Integer> stageOfRunning = new ConcurrentHashMap<>();
    private final Map<Long, Long> lostSince = new ConcurrentHashMap<>();

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
        stageOfRunning.put(start.taskInfo().taskId(), start.stageId());
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
        if (end.taskInfo() != null) {
            stageOfRunning.remove(end.taskInfo().taskId());
            lostSince.remove(end.taskInfo().taskId());
        }
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
        if (completed.stageInfo().failureReason().isDefined()) {
            stageOfRunning.forEach((task, stage) -> {
                if (stage == completed.stageInfo().stageId()) {
                    lostSince.putIfAbsent(task, System.nanoTime());
                }
            });
        }
    }

    /** Whether a task has run on for longer than this. */
    boolean anyLongerThan(long milliseconds) {
        long now = System.nanoTime();
        return lostSince.values().stream().anyMatch(since -> now - since > milliseconds * 1_000_000L);
    }
}
