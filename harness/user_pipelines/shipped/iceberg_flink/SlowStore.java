import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * Local files, in which a table's commit takes a while, as it does in a catalog over a network.
 *
 * A rename never replaces a file: two commits of the same version cannot both succeed, as in HDFS.
 */
public class SlowStore extends RawLocalFileSystem {
    private static final String MILLIS = "cutproof.commit.millis";

    static Configuration with(long millis) {
        Configuration configuration = new Configuration();
        configuration.set("fs.file.impl", SlowStore.class.getName());
        configuration.setLong(MILLIS, millis);
        return configuration;
    }

    @Override
    public boolean rename(Path source, Path target) throws IOException {
        if (!target.getName().endsWith(".metadata.json")) {
            return super.rename(source, target);
        }
        try {
            Thread.sleep(getConf().getLong(MILLIS, 0));
            Files.createLink(pathToFile(target).toPath(), pathToFile(source).toPath());
        } catch (FileAlreadyExistsException error) {
            return false;
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
        return delete(source, false);
    }
}
