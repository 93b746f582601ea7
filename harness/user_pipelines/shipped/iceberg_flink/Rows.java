import java.time.Duration;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.flink.FlinkSchemaUtil;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.sink.FlinkSink;
import org.apache.iceberg.flink.sink.IcebergSink;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Types;

/**
 * A running count by key, appended to an Iceberg table.  Arguments: the folders of the input and of the table, the
 * milliseconds for a record, the sink (`FlinkSink` or `IcebergSink`), the milliseconds for a commit to the table, and
 * `bounded` if the input has an end.
 */
public class Rows {
    private static final Schema SCHEMA =
            new Schema(
                    Types.NestedField.required(1, "key", Types.LongType.get()),
                    Types.NestedField.required(2, "value", Types.LongType.get()));

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        String folder = arguments[1];
        long millis = Long.parseLong(arguments[2]);
        boolean bounded = arguments.length > 5;
        Duration looks = bounded ? null : Duration.ofMillis(100);
        RowType type = FlinkSchemaUtil.convert(SCHEMA);
        DataStream<RowData> rows =
                Records.read(env, arguments[0], millis, env.getParallelism(), looks)
                        .keyBy(record -> record.f0)
                        .process(new Count.Counting(millis / 2))
                        .uid("count")
                        .map(new ToRow())
                        .returns(InternalTypeInfo.of(type))
                        .uid("row");
        Configuration store = SlowStore.with(Long.parseLong(arguments[4]));
        HadoopTables tables = new HadoopTables(store);
        if (!tables.exists(folder)) {
            tables.create(SCHEMA, PartitionSpec.unpartitioned(), folder);
        }
        TableLoader table = TableLoader.fromHadoopTable(folder, store);
        if (arguments[3].equals("FlinkSink")) {
            FlinkSink.forRowData(rows).tableLoader(table).uidPrefix("sink").append();
        } else {
            IcebergSink.forRowData(rows).tableLoader(table).uidSuffix("sink").append();
        }
        env.execute("rows");
    }

    static class ToRow implements MapFunction<String, RowData> {
        private static final ObjectMapper JSON = new ObjectMapper();

        @Override
        public RowData map(String line) throws Exception {
            JsonNode row = JSON.readTree(line);
            return GenericRowData.of(row.get("key").asLong(), row.get("value").asLong());
        }
    }
}
