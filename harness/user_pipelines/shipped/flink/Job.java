import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputFileConfig;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;

/**
 * Counts records by key.  Arguments: the folder of the input, that of the output, and how many
 * milliseconds each subtask takes for a record, so that there are checkpoints before the last one.
 *
 * Intervals, alignment and state backend are settings of the cluster or of the submission.
 */
public class Job {
    public static void main(String[] arguments) throws Exception {
        String input = arguments[0];
        String output = arguments[1];
        long millis = Long.parseLong(arguments[2]);

        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        FileSource<String> files =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(input)).build();
        DataStream<Tuple3<Long, Long, Long>> records =
                env.fromSource(files, WatermarkStrategy.noWatermarks(), "input")
                        .uid("input")
                        .map(new Parse(millis))
                        .uid("parse");
        DataStream<String> rows = records.keyBy(record -> record.f0).process(new Count(millis)).uid("count");
        FileSink<String> sink =
                FileSink.forRowFormat(new Path(output), new SimpleStringEncoder<String>())
                        .withBucketAssigner(new BasePathBucketAssigner<>())
                        .withRollingPolicy(OnCheckpointRollingPolicy.build())
                        .withOutputFileConfig(new OutputFileConfig("part", ".jsonl"))
                        .build();
        rows.sinkTo(sink).uid("sink");
        env.execute("count");
    }

    /** Reads (key, value, tag) from a line, slowly. */
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

    /** A running count by key.  It is a little slower than the source, so that records wait in the channels. */
    static class Count extends KeyedProcessFunction<Long, Tuple3<Long, Long, Long>, String> {
        private final long millis;
        private transient ValueState<Long> count;

        Count(long millis) {
            this.millis = millis;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple3<Long, Long, Long> record, Context context, Collector<String> out)
                throws Exception {
            Thread.sleep(millis);
            long counted = count.value() == null ? 1 : count.value() + 1;
            count.update(counted);
            out.collect("{\"key\": " + record.f0 + ", \"value\": " + counted + "}");
        }
    }
}
