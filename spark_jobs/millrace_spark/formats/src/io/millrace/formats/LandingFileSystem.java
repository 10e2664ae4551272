package io.millrace.formats;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * Landing files of a local disk, whatever their names.
 *
 * <p>Hadoop's usual file system looks for a checksum next to each file. It parses the name of that file, and its patterns
 * parse the names of files, as URLs: what stands before a colon would be a scheme.
 */
public final class LandingFileSystem extends RawLocalFileSystem {
    /** Returns the file whose name the pattern spells, with a backslash before each character that is special. */
    @Override
    public FileStatus[] globStatus(Path pattern) throws IOException {
        String name = pattern.toUri().getPath().replaceAll("\\\\(.)", "$1");
        try {
            return new FileStatus[] {getFileStatus(new Path(null, null, name))};
        } catch (FileNotFoundException missing) {
            return new FileStatus[0];
        }
    }
}
