import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputFileConfig;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/** What the jobs have in common: records (key, value, tag) from files of JSON lines, and rows into files. */
class Records {
    /** The records of all files of a folder.  A subtask takes a while for each, so that checkpoints come before the end. */
    static SingleOutputStreamOperator<Tuple3<Long, Long, Long>> read(
            StreamExecutionEnvironment env, String folder, long millis, int parallelism) {
        return read(env, folder, millis, parallelism, null);
    }

    /** The same; the folder is looked at for new files again and again, unless `looks` is null. */
    static SingleOutputStreamOperator<Tuple3<Long, Long, Long>> read(
            StreamExecutionEnvironment env, String folder, long millis, int parallelism, Duration looks) {
        FileSource.FileSourceBuilder<String> files =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(folder))
                        .setSplitAssigner(InOrder::new);
        if (looks != null) {
            files.monitorContinuously(looks);
        }
        return env.fromSource(files.build(), WatermarkStrategy.noWatermarks(), "input")
                .uid("input")
                .setParallelism(parallelism)
                .map(new Parse(millis))
                .uid("parse")
                .setParallelism(parallelism);
    }

    /** Part files that are closed with each checkpoint, and become visible once it is complete. */
    static FileSink<String> into(String folder) {
        return FileSink.forRowFormat(new Path(folder), new SimpleStringEncoder<String>())
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .withOutputFileConfig(new OutputFileConfig("part", ".jsonl"))
                .build();
    }

    static class Parse extends RichMapFunction<String, Tuple3<Long, Long, Long>> {
        private final long millis;
        private transient ObjectMapper json;

        Parse(long millis) {
            this.millis = millis;
        }

        @Override
        public void open(OpenContext context) {
            json = new ObjectMapper();
        }

        @Override
        public Tuple3<Long, Long, Long> map(String line) throws Exception {
            Thread.sleep(millis);
            JsonNode record = json.readTree(line);
            return Tuple3.of(
                    record.get("key").asLong(), record.get("value").asLong(), record.get("tag").asLong());
        }
    }

    /** Gives files away in the order of their names, so that one reader takes the records in the order of the feed. */
    static class InOrder implements FileSplitAssigner {
        private final List<FileSourceSplit> left = new ArrayList<>();

        InOrder(Collection<FileSourceSplit> splits) {
            addSplits(splits);
        }

        @Override
        public Optional<FileSourceSplit> getNext(String host) {
            return left.isEmpty() ? Optional.empty() : Optional.of(left.remove(0));
        }

        @Override
        public void addSplits(Collection<FileSourceSplit> splits) {
            left.addAll(splits);
            left.sort(Comparator.comparing(split -> Paths.get(split.path().getPath())));
        }

        @Override
        public Collection<FileSourceSplit> remainingSplits() {
            return left;
        }
    }
}
