import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** A running count by key.  Arguments: the folders of the input and of the output, and the milliseconds for a record. */
public class Count {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        long millis = Long.parseLong(arguments[2]);
        Records.read(env, arguments[0], millis, env.getParallelism())
                .keyBy(record -> record.f0)
                .process(new Counting(millis))
                .uid("count")
                .sinkTo(Records.into(arguments[1]))
                .uid("sink");
        env.execute("count");
    }

    /** It is as slow as the source, so that records wait in the channels, and unaligned barriers overtake them. */
    static class Counting extends KeyedProcessFunction<Long, Tuple3<Long, Long, Long>, String> {
        private final long millis;
        private transient ValueState<Long> count;

        Counting(long millis) {
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
            out.collect(String.format("{\"key\": %d, \"value\": %d}", record.f0, counted));
        }
    }
}
