import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node with its REST interface on a loopback port: what the distribution starts, without its scripts. */
public class Node {
    private static class SingleNode extends org.opensearch.node.Node {
        SingleNode(Environment environment) {
            super(environment, List.of(Netty4Plugin.class), false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0]).put("http.port", arguments[1]).put("transport.port", "0")
            .put("cluster.name", "test").put("node.name", "test").put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1").put("transport.type", "netty4").put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new SingleNode(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "test")).start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
