import java.time.Duration;
import java.util.Collections;
import org.apache.flink.api.common.accumulators.LongMaximum;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Sums by key in tumbling windows; a record's tag is its event time.  Arguments: the folders of the
 * input and of the output, the milliseconds for a record, and the size of a window.
 *
 * One subtask reads all files, in order: so no record is late, and the savepoint of a stopped job
 * covers the first so many records, which the accumulator `position` tells.
 */
public class Windows {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        long millis = Long.parseLong(arguments[2]);
        Records.read(env, arguments[0], millis, 1)
                .map(new Position())
                .uid("position")
                .setParallelism(1)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tuple3<Long, Long, Long>>forGenerator(context -> new AfterEach())
                                .withTimestampAssigner((record, before) -> record.f2))
                .uid("times")
                .setParallelism(1)
                .keyBy(record -> record.f0)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(Long.parseLong(arguments[3]))))
                .process(new Summing())
                .uid("windows")
                .sinkTo(Records.into(arguments[1]))
                .uid("sink");
        env.execute("windows");
    }

    /** A watermark behind each record, not now and then: so the position alone says which windows are over. */
    static class AfterEach implements WatermarkGenerator<Tuple3<Long, Long, Long>> {
        private long greatest = Long.MIN_VALUE + 1;

        @Override
        public void onEvent(Tuple3<Long, Long, Long> record, long time, WatermarkOutput output) {
            greatest = Math.max(greatest, time);
            output.emitWatermark(new Watermark(greatest - 1));
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    static class Summing
            extends ProcessWindowFunction<Tuple3<Long, Long, Long>, String, Long, TimeWindow> {
        @Override
        public void process(
                Long key, Context context, Iterable<Tuple3<Long, Long, Long>> records, Collector<String> out) {
            long sum = 0;
            long tags = 0;
            for (Tuple3<Long, Long, Long> record : records) {
                sum += record.f1;
                tags += record.f2;
            }
            out.collect(
                    String.format(
                            "{\"key\": %d, \"value\": %d, \"tag\": %d, \"tag2\": %d}",
                            key, sum, tags, context.window().getStart()));
        }
    }

    /** Counts all records that were read, also those before a restore. */
    static class Position extends RichMapFunction<Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>>
            implements CheckpointedFunction {
        private final LongMaximum told = new LongMaximum();
        private long position;
        private transient ListState<Long> stored;

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            stored = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("position", Types.LONG));
            for (long before : stored.get()) {
                position += before;
            }
            getRuntimeContext().addAccumulator("position", told);
            told.add(position);
        }

        @Override
        public Tuple3<Long, Long, Long> map(Tuple3<Long, Long, Long> record) {
            position++;
            told.add(position);
            return record;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            stored.update(Collections.singletonList(position));
        }
    }
}
