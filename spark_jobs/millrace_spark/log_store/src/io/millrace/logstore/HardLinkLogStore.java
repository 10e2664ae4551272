package io.millrace.logstore;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/**
 * The commit point for Delta tables on local disk: of any number of processes that write one log version, exactly
 * one wins.
 *
 * <p>Delta's stock stores look whether the version is free and then rename onto it. Between the two another process
 * can do the same, and the second rename replaces the first commit, which was acknowledged and is then gone without
 * an error. A hard link has no such gap: the kernel makes the name or refuses. The README beside the sources has the
 * losses that were measured.
 *
 * <p>The order of a write: a temporary file in the same folder, forced to disk; the link; the temporary name is
 * removed. A process killed anywhere leaves a whole commit or none, and at worst a hidden {@code .*.tmp} file that no
 * listing of versions reaches. Files are written past Hadoop's checksum layer, so they have no hidden {@code .crc}
 * beside them that another writer could replace; one that a stock store left is removed before the new content is
 * seen.
 *
 * <p>Set by {@code spark.delta.logStore.file.impl}, on every session that writes the table. delta-rs commits by a hard
 * link too and can write the same table.
 */
public final class HardLinkLogStore extends HadoopFileSystemLogStore {

    /** Called by Delta, by reflection. */
    public HardLinkLogStore(Configuration hadoopConf) {
        super(hadoopConf);
    }

    /**
     * Writes one file of the log, each action on a line of its own. If {@code actions} fails midway, nothing is
     * written.
     *
     * @param overwrite false for a commit: the file must not exist yet; true (as for {@code _last_checkpoint}): it is
     *     replaced in one step, and a reader sees the old or the new one, whole
     * @throws FileAlreadyExistsException if {@code overwrite} is false and another writer has the version; Delta then
     *     checks for a conflict and goes on with the next version
     * @throws IOException if the folder is missing, the disk is full, or its file system has no hard links
     */
    @Override
    public void write(
            org.apache.hadoop.fs.Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
            throws IOException {
        Path target = localPath(path, hadoopConf);
        Path temporary = localPath(createTempPath(path), hadoopConf);
        try {
            writeAndForce(temporary, actions);
            Files.deleteIfExists(target.resolveSibling("." + target.getFileName() + ".crc"));
            if (overwrite) {
                Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE);
            } else {
                link(target, temporary);
            }
        } finally {
            Files.deleteIfExists(temporary);
        }
    }

    /**
     * Tells Delta whether readers may see a half-written file. On a disk they may, so Delta writes its checkpoints,
     * which do not come through this store, under another name first.
     */
    @Override
    public Boolean isPartialWriteVisible(org.apache.hadoop.fs.Path path, Configuration hadoopConf) {
        return true;
    }

    /** Makes {@code target} a second name of {@code temporary}, or fails because the name is taken. */
    static void link(Path target, Path temporary) throws IOException {
        try {
            Files.createLink(target, temporary);
        } catch (FileAlreadyExistsException taken) {
            throw taken;
        } catch (UnsupportedOperationException | FileSystemException refused) {
            throw new IOException(refusal(target, refused), refused);
        }
    }

    private static String refusal(Path target, Exception refused) throws IOException {
        return String.format(
                "Move the tables (LAKEHOUSE_ROOT) to S3 or to a file system with hard links (ext4, xfs, APFS, NFS): "
                        + "%s could not be committed, because its file system (type %s) refused a hard link: %s. "
                        + "Without one, two writers could overwrite each other's commits. Nothing was written.",
                target, Files.getFileStore(target.getParent()).type(), refused);
    }

    /** Refuses a path of another scheme ("Wrong FS"), for which a hard link means nothing. */
    private static Path localPath(org.apache.hadoop.fs.Path path, Configuration hadoopConf) throws IOException {
        return FileSystem.getLocal(hadoopConf).pathToFile(path).toPath();
    }

    /** Forced to disk before it gets its name, so that a power cut cannot leave a commit that is empty or torn. */
    private static void writeAndForce(Path file, Iterator<String> lines) throws IOException {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            OutputStream out = new BufferedOutputStream(Channels.newOutputStream(channel));
            while (lines.hasNext()) {
                out.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
            out.flush();
            channel.force(true);
        }
    }
}
