import java.time.Duration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
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
 * Appends records to an Iceberg table, as they are.  Arguments: the folders of the input and of the table, the
 * milliseconds for a record, the sink (`FlinkSink` or `IcebergSink`), the milliseconds for a commit to the table, and
 * `bounded` if the input has an end.
 */
public class Rows {
    private static final Schema SCHEMA =
            new Schema(
                    Types.NestedField.required(1, "key", Types.LongType.get()),
                    Types.NestedField.required(2, "value", Types.LongType.get()),
                    Types.NestedField.required(3, "tag", Types.LongType.get()));
    private static final Duration LOOKS = Duration.ofMillis(100);

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        String folder = arguments[1];
        long millis = Long.parseLong(arguments[2]);
        boolean bounded = arguments.length > 5;
        DataStream<RowData> rows =
                Records.read(env, arguments[0], millis, env.getParallelism(), bounded ? null : LOOKS)
                        .map(record -> (RowData) GenericRowData.of(record.f0, record.f1, record.f2))
                        .returns(InternalTypeInfo.of(FlinkSchemaUtil.convert(SCHEMA)))
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
}
