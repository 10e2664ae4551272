package io.millrace.logstore;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The commit point for Delta tables on S3: of any number of processes that write one log version, exactly one wins.
 *
 * <p>No store that ships with Delta asks S3 for a conditional put. {@code S3SingleDriverLogStore}, the default, looks
 * whether the object is there and then puts it, so two drivers replace each other's acknowledged commits without an
 * error. The README beside the sources has the losses that were measured.
 *
 * <p>S3A sends {@code If-None-Match: *} only when it is asked for by name; {@code create(path, false)} is not enough.
 * It answers a lost race with {@code RemoteFileChangedException}, which Delta does not know; {@link
 * FileAlreadyExistsException} it does, and then checks for a conflict and goes on with the next version.
 *
 * <p>A 409 (ConditionalRequestConflict: somebody else is putting the same object right now) is passed on in the same way.
 * Delta then looks which versions there are, and puts the same commit again, as the same version where nobody has it.
 *
 * <p>Two answers leave it open whether the commit is there: a put that was tried again after its reply got lost (it
 * may be refused because of itself), and any other {@link IOException}. The writer settles both by looking for its
 * token in the log; {@code spark.databricks.delta.commit.idempotencyCheck.enabled} covers the first.
 *
 * <p>Set by {@code spark.delta.logStore.s3a.impl}, and by {@code s3} and {@code s3n} alike, on every session that
 * writes the table. delta-rs and Trino commit by a conditional put too and can write the same table.
 */
public final class ConditionalPutLogStore extends HadoopFileSystemLogStore {

    /** S3A's option for If-None-Match (hadoop-aws 3.4.2 and later), and the name of the capability to do it. */
    static final String CONDITIONAL_CREATE = "fs.option.create.conditional.overwrite";

    /** By name: its class is in hadoop-aws, whose 641 MB of dependencies neither set-up nor local tables need. */
    private static final String PRECONDITION_FAILED = "org.apache.hadoop.fs.s3a.RemoteFileChangedException";

    private static final Integer CONFLICT = 409;

    /** Called by Delta, by reflection. */
    public ConditionalPutLogStore(Configuration hadoopConf) {
        super(hadoopConf);
    }

    /**
     * Puts one file of the log, each action on a line of its own. If {@code actions} fails midway, nothing is put.
     *
     * @param overwrite false for a commit: the object must not exist yet; true (as for {@code _last_checkpoint}): it is
     *     replaced in one step
     * @throws FileAlreadyExistsException if {@code overwrite} is false and another writer has the version
     * @throws IOException if the file system cannot make conditional puts, or on any failure of the put
     */
    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
            throws IOException {
        FileSystem fs = path.getFileSystem(hadoopConf);
        if (overwrite) {
            put(fs.create(path, true), actions);
            return;
        }
        try {
            put(createIfAbsent(fs, path), actions);
        } catch (org.apache.hadoop.fs.FileAlreadyExistsException taken) {
            throw asDeltaKnowsIt(path, taken);
        } catch (IOException refused) {
            throw isLost(refused) ? asDeltaKnowsIt(path, refused) : refused;
        }
    }

    /** Tells Delta whether readers may see a half-written file. On S3 an object appears whole, on the closing call. */
    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration hadoopConf) {
        return false;
    }

    private static FSDataOutputStream createIfAbsent(FileSystem fs, Path path) throws IOException {
        if (!fs.hasPathCapability(path, CONDITIONAL_CREATE)) {
            throw new IOException(String.format(
                    "Use hadoop-aws 3.4.2 or later (lakehouse jars) and leave fs.s3a.create.conditional.enabled at true: "
                            + "%s could not be committed, because %s makes no conditional puts as it is set up here. "
                            + "Without them, two writers could overwrite each other's commits. Nothing was written.",
                    path, fs.getClass().getName()));
        }
        FSDataOutputStreamBuilder<?, ?> builder = fs.createFile(path).recursive().overwrite(false);
        builder.must(CONDITIONAL_CREATE, true);
        return builder.build();
    }

    /** Closing is what makes the object visible, so a stream that did not get all of its lines is aborted instead. */
    private static void put(FSDataOutputStream out, Iterator<String> lines) throws IOException {
        try {
            while (lines.hasNext()) {
                out.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (Throwable failure) {
            out.abort();
            throw failure;
        }
        out.close();
    }

    private static boolean isLost(IOException refused) {
        if (refused.getClass().getName().equals(PRECONDITION_FAILED)) {
            return true;
        }
        try {
            return refused.getClass().getMethod("statusCode").invoke(refused).equals(CONFLICT);
        } catch (ReflectiveOperationException noAnswerOfS3) {
            return false;
        }
    }

    private static IOException asDeltaKnowsIt(Path path, IOException refused) {
        IOException taken = new FileAlreadyExistsException(path.toString());
        taken.initCause(refused);
        return taken;
    }
}
