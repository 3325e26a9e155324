// Creates the metrics server and the REST server of an edge, with access to the other parts.

import { restListenerOf, type ServerConfig } from '@tunnel/config/server';
import { createStackGate, type ProcessGate } from '@tunnel/http-shell';
import { createCallerAddress } from '@tunnel/rules/net';
import { createMetrics, type InternalErrors, randomId, type Secret } from '@tunnel/runtime';
import type { CertificateSources } from './admin/certificate-list.ts';
import type { GroupFeed } from './admin/group-feed.ts';
import type { GroupMetrics } from './admin/group-metrics.ts';
import { EdgeMetrics, MetricsServer, platformSeriesReader } from './admin/metrics-server.ts';
import { RestServer } from './admin/rest-server.ts';
import type { AlertSender } from './alerts/alert-sender.ts';
import type { LastAlerts } from './alerts/last-alerts.ts';
import type { Backend } from './backend/backend.ts';
import { CaptureService } from './capture/capture-service.ts';
import type { CaptureStore } from './capture/capture-store.ts';
import { Replays } from './capture/replay.ts';
import type { AuthFailures } from './control/authentication.ts';
import type { ControlPlane } from './control/control-plane.ts';
import type { EdgeDeps } from './edge-interface.ts';
import type { EdgePolicies } from './edge-policies.ts';
import type { Ingress } from './ingress/ingress.ts';
import type { Registry } from './routing/registry.ts';

export interface AdminParts {
  readonly config: ServerConfig;
  readonly deps: EdgeDeps;
  readonly version: string;
  /** Secret with which the platform authenticates to the edge's REST API. Generated at each start of the edge. */
  readonly platformSecret: Secret;
  /** Time of the edge's start, on the monotonic clock. */
  readonly startedMs: () => number;
  readonly internalErrors: InternalErrors;
  readonly connections: ProcessGate;
  readonly backend: Backend;
  readonly failures: AuthFailures;
  readonly captures: CaptureStore;
  readonly policies: EdgePolicies;
  /** Returns the number of spans that the collector of traces did not get. */
  readonly droppedSpans: () => number;
  readonly tunnels: Registry;
  readonly ingress: Ingress;
  readonly feed: GroupFeed;
  readonly groupMetrics: GroupMetrics;
  readonly alerts: AlertSender;
  readonly lastAlerts: LastAlerts;
  readonly control: ControlPlane;
  readonly certificates: CertificateSources;
}

export const makeMetricsServer = (parts: AdminParts): MetricsServer => {
  const { config, deps, ingress, control, connections, backend, policies, alerts } = parts;
  const { server, region, load_balancing } = config;
  const { logger, platform } = deps;
  const metrics = new EdgeMetrics(createMetrics({ processMetrics: true }), {
    version: parts.version,
    regionId: region.id,
    tunnels: parts.tunnels,
    ports: ingress.ports,
    http: ingress.http,
    tls: () => ingress.httpListeners.tlsTotals,
    handshakes: connections.gate.handshakes,
    peers: ingress.peers,
    sessions: () => control.figures.sessions,
    carriers: () => control.figures.carriers,
    streams: () => control.figures.streams,
    datagramPaths: () => control.datagramPaths,
    authFailures: () => parts.failures.total,
    clientsHeldBack: () => control.figures.heldBack,
    droppedLogLines: () => logger.droppedLines,
    droppedSpans: parts.droppedSpans,
    admission: connections.gate.admission,
    internalErrors: parts.internalErrors.counts,
    journalQueue: () => backend.journalQueue,
    reserved: backend.reserved,
    restarts: deps.restarts ?? null,
    backups: deps.backups ?? (() => null),
    platformSeries: platform === undefined ? null : platformSeriesReader(platform),
    sseConsumers: () => parts.feed.consumers,
    policy: policies.figures,
    certificates: { ...parts.certificates, now: () => deps.clock.now() },
    loadBalancing: load_balancing.enabled
      ? { groups: parts.groupMetrics, alerts: alerts.totals, droppedAlerts: alerts.dropped }
      : null,
  });
  const on = { host: server.metrics_host, port: server.metrics_port };
  return new MetricsServer(on, connections.gate, metrics, logger);
};

export const makeRest = (parts: AdminParts): RestServer => {
  const { config, deps, version, platformSecret, tunnels, ingress, control, feed, lastAlerts } = parts;
  const { server, region } = config;
  const { clock, logger } = deps;
  const { gate } = parts.connections;
  const store = parts.captures;
  const stackGate = deps.platform === undefined ? null : createStackGate({ clock, logger });
  const replays = new Replays({ store, clock, http: ingress.http });
  return new RestServer(
    { ...restListenerOf(config), port: server.api_port },
    { gate, stackGate },
    {
      admission: gate.admission,
      monotonic: () => clock.monotonic(),
      now: () => clock.now(),
      backend: parts.backend,
      platformSecret,
      tunnels,
      groups: tunnels.groups,
      feed,
      lastAlertOf: (group, member) => lastAlerts.of(group, member),
      udp: ingress.ports.udp,
      peers: ingress.peers,
      datagramPathOf: (tunnel) => control.datagramPathOf(tunnel),
      closeTunnel: (tunnelId, fault) => control.closeTunnel(tunnelId, fault),
      operatorRules: parts.policies.operatorRules,
      certificates: parts.certificates,
      captures: new CaptureService({ store, tunnels, replays }),
      status: () => ({
        sessions: control.figures.sessions,
        tunnels: tunnels.size,
        uptime_secs: (clock.monotonic() - parts.startedMs()) / 1000,
        draining: control.isDraining,
      }),
      region,
      domain: server.domain,
      version,
      authFailures: parts.failures,
      callerAddress: createCallerAddress(server.trusted_proxies),
      newRequestId: () => randomId('req'),
      logger,
    },
  );
};
