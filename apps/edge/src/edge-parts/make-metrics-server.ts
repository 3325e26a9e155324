// The metrics of an edge on their port: who is asked for which figure.
import { createMetrics, type Logger, type ServerConfig } from '@tunnel/runtime';
import { EdgeMetrics, MetricsServer } from '../admin/metrics-server.ts';
import type { AuthFailures } from '../control/auth-failures.ts';
import type { GroupWatch } from '../group-watch.ts';
import type { ControlSide } from './control-side.ts';
import type { PublicSide } from './public-side.ts';

export interface MeasuredParts {
  readonly control: ControlSide;
  readonly publicSide: PublicSide;
  readonly failures: AuthFailures;
  readonly watch: GroupWatch;
  readonly logger: Logger;
}

export const makeMetricsServer = (config: ServerConfig, parts: MeasuredParts): MetricsServer => {
  const { server, region } = config;
  const { control, publicSide, failures, watch, logger } = parts;
  const metrics = new EdgeMetrics(createMetrics({ processMetrics: true }), {
    regionId: region.id,
    tunnels: publicSide.tunnels,
    relay: publicSide.relay,
    http: publicSide.http,
    sessions: () => control.figures.sessions,
    carriers: () => control.figures.carriers,
    streams: () => control.figures.streams,
    authFailures: () => failures.total,
    droppedLogLines: () => logger.droppedLines,
    sseConsumers: () => watch.feed.consumers,
    loadBalancing: config.load_balancing.enabled ? { groups: watch.metrics, alerts: watch.alerts.totals } : null,
  });
  return new MetricsServer({ host: server.metrics_host, port: server.metrics_port }, metrics, logger);
};
