import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * Hadoop's local file system, in which the writers of a race also rename their commits at the same instant. Hadoop has
 * then looked, in every process, whether the new name is free: it shows without thousands of rounds what becomes of a
 * name that is taken in between. Set by {@code fs.AbstractFileSystem.file.impl}.
 */
public final class RenameAtTheInstant extends ChecksumFs {

    /** Called by Hadoop, by reflection. */
    public RenameAtTheInstant(URI uri, Configuration conf) throws IOException, URISyntaxException {
        super(new Raw(uri, conf));
    }

    private static final class Raw extends DelegateToFileSystem {
        Raw(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(uri, new AlignedRename(), conf, "file", false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }
    }

    private static final class AlignedRename extends RawLocalFileSystem {
        @Override
        public boolean rename(Path source, Path target) throws IOException {
            if (!isChecksum(target)) {
                Barrier.await();
            }
            return super.rename(source, target);
        }

        private static boolean isChecksum(Path file) {
            return file.getName().endsWith(".crc");
        }
    }
}
