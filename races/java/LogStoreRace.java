import io.delta.storage.LogStore;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * One writer of a race: commits its name as version 0, 1, 2, ... through a log store, at the same instant as the other
 * writers, each a process of its own. It prints a line for each version: the version, {@code won} or {@code lost}, and
 * how many nanoseconds the whole write took, with what the store looks for before it; of a writer that has rivals, the
 * time in which it waits for them is in it.
 *
 * <p>The instant is inside the write: the line is handed out when all writers ask for it. So a store that looks whether
 * the version is free has looked, in every process, before any of them finishes.
 *
 * <p>Arguments: class of the log store, URI of the log folder, name of this writer, number of versions; then Hadoop
 * settings as {@code key=value}. The system properties of {@link Barrier}.
 */
public final class LogStoreRace {
    private LogStoreRace() {}

    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        for (String setting : List.of(arguments).subList(4, arguments.length)) {
            String[] keyAndValue = setting.split("=", 2);
            conf.set(keyAndValue[0], keyAndValue[1]);
        }
        Class<?> type = Class.forName(arguments[0]);
        LogStore store = (LogStore) type.getConstructor(Configuration.class).newInstance(conf);
        for (int version = 0; version < Integer.parseInt(arguments[3]); version++) {
            Path commit = new Path(arguments[1], String.format("%020d.json", version));
            long since = System.nanoTime();
            String outcome = outcome(store, commit, arguments[2], conf);
            System.out.println(version + " " + outcome + " " + (System.nanoTime() - since));
        }
    }

    private static String outcome(LogStore store, Path commit, String line, Configuration conf) throws IOException {
        try {
            store.write(commit, atTheInstant(line), false, conf);
            return "won";
        } catch (FileAlreadyExistsException taken) {
            return "lost";
        }
    }

    private static Iterator<String> atTheInstant(String line) {
        return List.of(line).stream().peek(any -> Barrier.await()).iterator();
    }
}
