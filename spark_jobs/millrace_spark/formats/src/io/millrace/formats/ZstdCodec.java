package io.millrace.formats;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdInputStreamNoFinalizer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.CompressionOutputStream;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.Decompressor;

/**
 * Reads {@code .zst} files, by the library that Spark brings for its own use.
 *
 * <p>Hadoop's own codec needs Hadoop's native library, which pip's pyspark does not have. The one in aircompressor
 * refuses skippable frames, which pzstd writes, and windows beyond 8 MiB, which {@code --long} and {@code --ultra} make.
 *
 * <p>Set by {@code spark.hadoop.io.compression.codecs}; Hadoop finds its other codecs by itself. Nothing is written
 * through it.
 */
public final class ZstdCodec implements CompressionCodec {

    @Override
    public CompressionInputStream createInputStream(InputStream stored) throws IOException {
        return new Unpacked(stored);
    }

    @Override
    public CompressionInputStream createInputStream(InputStream stored, Decompressor unused) throws IOException {
        return new Unpacked(stored);
    }

    /** None: the stream unpacks by itself, so Hadoop has nothing to lend out again. */
    @Override
    public Class<? extends Decompressor> getDecompressorType() {
        return null;
    }

    @Override
    public Decompressor createDecompressor() {
        return null;
    }

    @Override
    public String getDefaultExtension() {
        return ".zst";
    }

    @Override
    public CompressionOutputStream createOutputStream(OutputStream out) {
        throw readsOnly();
    }

    @Override
    public CompressionOutputStream createOutputStream(OutputStream out, Compressor compressor) {
        throw readsOnly();
    }

    @Override
    public Class<? extends Compressor> getCompressorType() {
        return null;
    }

    @Override
    public Compressor createCompressor() {
        throw readsOnly();
    }

    private static UnsupportedOperationException readsOnly() {
        return new UnsupportedOperationException("Write another format: Millrace reads .zst files and writes none.");
    }

    /** The content of all frames, one after the other. */
    private static final class Unpacked extends CompressionInputStream {

        private final ZstdInputStreamNoFinalizer content;

        Unpacked(InputStream stored) throws IOException {
            super(stored);
            content = new ZstdInputStreamNoFinalizer(stored);
            content.setLongMax(Zstd.windowLogMax());
        }

        @Override
        public int read() throws IOException {
            return content.read();
        }

        @Override
        public int read(byte[] into, int from, int most) throws IOException {
            return content.read(into, from, most);
        }

        @Override
        public void resetState() {
            throw new UnsupportedOperationException("A .zst file is read from its start to its end, in one go.");
        }

        @Override
        public void close() throws IOException {
            content.close();
        }
    }
}
