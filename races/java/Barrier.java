import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;

/**
 * Lets several processes, one thread each, go on at the same instant, as often as they like.
 *
 * <p>They share one counter, the first four bytes of a file. System properties: {@code race.barrier}, the file, with
 * zeros at first; {@code race.writers}, the number of processes.
 */
final class Barrier {
    private static final VarHandle INTS =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);
    private static final int WRITERS = Integer.getInteger("race.writers");
    private static final MappedByteBuffer COUNTER = map(Path.of(System.getProperty("race.barrier")));
    private static int expected;

    private Barrier() {}

    static void await() {
        expected += WRITERS;
        INTS.getAndAdd(COUNTER, 0, 1);
        long deadline = System.nanoTime() + PATIENCE;
        while ((int) INTS.getVolatile(COUNTER, 0) < expected) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("The other writers did not come to the barrier within a minute");
            }
            Thread.yield();
        }
    }

    private static MappedByteBuffer map(Path file) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, Integer.BYTES);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
