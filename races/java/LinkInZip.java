package io.millrace.logstore;

import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Tries to commit inside a zip file, the one file system without hard links that every machine has. */
public final class LinkInZip {
    private LinkInZip() {}

    /** The message of the refusal, or an empty string if there was none. */
    public static String refusal(String zipFile) throws IOException {
        try (FileSystem zip = FileSystems.newFileSystem(Path.of(zipFile), Map.of("create", "true"))) {
            Path temporary = Files.writeString(zip.getPath("/.temporary"), "{}");
            HardLinkLogStore.link(zip.getPath("/00000000000000000000.json"), temporary);
            return "";
        } catch (IOException refused) {
            return refused.getMessage();
        }
    }
}
