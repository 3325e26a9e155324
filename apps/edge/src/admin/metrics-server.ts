// Metrics of an edge, and the /metrics endpoint for Prometheus on a separate port (loopback by default). Hot paths increment plain
// numbers, which are read only when scraped.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { EDGE_LINK_PATH, type ShownProtocol, shownProtocol, showProtocol } from '@tunnel/contract';
import { type ConnectionGate, HttpListener, type ListenOn, readBounded } from '@tunnel/http-shell';
import type { Admission, ConnectionShare } from '@tunnel/rules/admission';
import { addBackupSeries, type BackupFigures, type Counter, type Logger, type Metrics } from '@tunnel/runtime';
import type { StackPlatform } from '../backend/choose-backend.ts';
import { RESERVED_KINDS, type ReservedNames } from '../backend/names/reserved-names.ts';
import { type HttpTotals, STATUS_CLASSES } from '../ingress/http/http-totals.ts';
import type { PortTotals } from '../ingress/kinds.ts';
import type { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { TlsTotals } from '../ingress/tls/tls-totals.ts';
import type { UdpListeners } from '../ingress/udp/udp-listeners.ts';
import { EDGE_LIMITS } from '../limits.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { addCertificateSeries, type CertificateFigures } from './certificate-metrics.ts';
import type { GroupMetrics } from './group-metrics.ts';
import { addPolicySeries, type PolicyFigures } from './policy-metrics.ts';
import { API_BOUNDS } from './rest-server.ts';

/** Timeout for fetching the metrics of the platform in the same stack. A scrape waits for the result. */
const PLATFORM_SERIES_MS = 1000;

export class MetricsServer extends HttpListener {
  constructor(on: Omit<ListenOn, 'key'>, gate: ConnectionGate, metrics: EdgeMetrics, logger: Logger) {
    super({
      on: { ...on, key: '[server] metrics_port' },
      onRequest: (request, response) => void answer(request, response, metrics, logger),
      gate,
      kind: 'metrics',
      bounds: API_BOUNDS,
      refused: (fault) => ({ headers: { 'content-type': 'text/plain' }, body: `${fault.message}\n` }),
    });
  }
}

const answer = async (
  request: IncomingMessage,
  response: ServerResponse,
  metrics: EdgeMetrics,
  logger: Logger,
): Promise<void> => {
  const isScrape = request.method === 'GET' || request.method === 'HEAD';
  if (!isScrape || request.url?.split('?')[0] !== '/metrics') {
    respond(response, 404, 'Not found. The metrics are at /metrics.\n');
    return;
  }
  try {
    respond(response, 200, await metrics.text(), metrics.contentType);
  } catch (error) {
    logger.error({ err: error }, 'cannot collect metrics');
    respond(response, 500, 'cannot collect metrics\n');
  }
};

const respond = (response: ServerResponse, status: number, text: string, contentType = 'text/plain'): void => {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
};

// ---- the series ----

export interface EdgeFigures {
  /** Version of the server. */
  readonly version: string;
  readonly regionId: string;
  readonly tunnels: { values(): Iterable<Pick<Tunnel, 'protocol'>> };
  /** Figures of TCP and UDP tunnels, which have a dedicated public port. */
  readonly ports: {
    readonly tcp: { readonly totals: PortTotals; readonly connections: number };
    readonly udp: Pick<UdpListeners, 'totals' | 'connections' | 'dropped'>;
  };
  readonly http: { readonly totals: HttpTotals; readonly connections: number; readonly queuedBytes: number };
  /** Returns the connection totals of the HTTPS port. */
  readonly tls: () => TlsTotals;
  /** Completed TLS handshakes of visitors and clients. */
  readonly handshakes: ConnectionGate['handshakes'];
  readonly peers: Pick<PeerJoins, 'totals' | 'counts'>;
  readonly sessions: () => number;
  readonly carriers: () => number;
  readonly streams: () => number;
  /** Returns the number of clients with udp tunnels, by datagram path, and of packets dropped at the edge's UDP ports, by reason. */
  readonly datagramPaths: () => {
    readonly clients: Readonly<Record<'udp' | 'carrier', number>>;
    readonly refused: Readonly<Record<string, number>>;
    /** Number of datagrams that clients sent for UDP flows that are closed. */
    readonly unopened: number;
  };
  readonly authFailures: () => number;
  /** Returns how often the edge paused reading from a client that exceeded its frame limit. */
  readonly clientsHeldBack: () => number;
  readonly droppedLogLines: () => number;
  /** Returns the number of spans that the collector of traces did not get. */
  readonly droppedSpans: () => number;
  /** Admission of connections of every kind, counted from accept. */
  readonly admission: Pick<Admission, 'limits' | 'used' | 'refusals'>;
  /** Number of internal errors, by the place in the code that caught the error. An error closes a single connection. */
  readonly internalErrors: ReadonlyMap<string, number>;
  readonly sseConsumers: () => number;
  readonly reserved: Pick<ReservedNames, 'countOf'>;
  /** Returns the state of the journal's write queue, or undefined if the edge has no journal. */
  readonly journalQueue: () => { readonly bytes: number; readonly timesFull: number } | undefined;
  /** Returns the number of restarts per part of the stack. Null if the edge runs without a supervisor. */
  readonly restarts: (() => Readonly<Record<string, number>>) | null;
  /** Returns figures of the stack's backups. Null while backups are off; the metrics then have no values. */
  readonly backups: () => BackupFigures | null;
  /** Fetches the metrics text of the platform in the same stack; empty if the platform does not respond. Null without such a platform. */
  readonly platformSeries: (() => Promise<string>) | null;
  readonly policy: PolicyFigures;
  readonly certificates: CertificateFigures;
  /** Figures of groups and alerts. Null while load balancing is off; the metrics then do not exist. */
  readonly loadBalancing: {
    readonly groups: GroupMetrics;
    readonly alerts: AlertFigures;
    /** Number of alerts not sent, by reason. */
    readonly droppedAlerts: Readonly<Record<string, number>>;
  } | null;
}

/** Number of alerts, by destination and outcome. */
export type AlertFigures = Readonly<Record<string, Readonly<Record<string, number>>>>;

export class EdgeMetrics {
  readonly #metrics: Metrics;
  readonly #platformSeries: EdgeFigures['platformSeries'];
  readonly #counters: readonly (() => void)[];
  readonly #readCertificates: () => Promise<void>;

  constructor(metrics: Metrics, figures: EdgeFigures) {
    this.#metrics = metrics;
    this.#platformSeries = figures.platformSeries;
    addGauges(metrics, figures);
    addGroupSeries(metrics, figures);
    addUdpSeries(metrics, figures);
    addTlsSeries(metrics, figures);
    addPeerSeries(metrics, figures);
    addPolicySeries(metrics, figures.policy);
    metrics.seriesOf(
      'tunnel_internal_errors_total',
      'Internal errors of the edge. An error closes the affected connection',
      'counter',
      () => [...figures.internalErrors].map(([where, value]) => ({ labels: { where }, value })),
    );
    metrics.seriesOf('tunnel_reserved_names', 'Reserved names and ports known to this edge', 'gauge', () =>
      RESERVED_KINDS.map((kind) => ({ labels: { kind }, value: figures.reserved.countOf(kind) })),
    );
    const build = { labels: { version: figures.version, node: process.versions.node }, value: 1 };
    metrics.seriesOf('tunnel_build_info', 'Versions of the server and of Node.js', 'gauge', () => [build]);
    addRestartSeries(metrics, figures);
    addBackupSeries(metrics, figures.backups);
    this.#readCertificates = addCertificateSeries(metrics, figures.certificates);
    this.#counters = [...addCounters(metrics, figures), ...addHttpCounters(metrics, figures)];
  }

  get contentType(): string {
    return this.#metrics.contentType;
  }

  /** Returns all metrics as text. Appends the metrics of the platform in the same stack, so that a stack has a single scrape target. */
  async text(): Promise<string> {
    for (const bringUpToDate of this.#counters) bringUpToDate();
    await this.#readCertificates();
    const [own, platform = ''] = await Promise.all([this.#metrics.text(), this.#platformSeries?.()]);
    return own + platform;
  }
}

/**
 * Fetches metrics from the platform of the same stack at each scrape. If the platform does not respond, only the platform's metrics are
 * missing.
 */
export const platformSeriesReader =
  ({ url, credential }: StackPlatform) =>
  async (): Promise<string> => {
    try {
      const response = await fetch(`${url}${EDGE_LINK_PATH}/metrics`, {
        headers: { authorization: `Bearer ${credential.reveal()}` },
        redirect: 'error',
        signal: AbortSignal.timeout(PLATFORM_SERIES_MS),
      });
      return response.ok ? await readBounded(response, EDGE_LIMITS.PLATFORM_ANSWER_MAX_BYTES) : '';
    } catch {
      return '';
    }
  };

const addGauges = (metrics: Metrics, figures: EdgeFigures): void => {
  const { tunnels, ports, http, sessions, carriers, streams, sseConsumers, admission } = figures;
  metrics.gauge('tunnel_active_sessions', 'Connected clients', [], sessions);
  for (const protocol of shownProtocol.options) {
    metrics.gauge(`tunnel_active_tunnels_${protocol}`, `Living ${protocol} tunnels`, [], () =>
      countOf(tunnels, protocol),
    );
  }
  metrics.gauge('tunnel_active_carriers', 'Carriers (connections with streams between edge and clients)', [], carriers);
  metrics.gauge('tunnel_active_streams', 'Open streams to clients', [], streams);
  // The gauge excludes flows of udp tunnels, which have a separate metric.
  const connections = () => ports.tcp.connections + http.connections;
  metrics.gauge('tunnel_active_connections', 'Open visitor connections', [], connections);
  addShareGauges(metrics, admission);
  const queuedBytes = () => figures.journalQueue()?.bytes ?? 0;
  metrics.gauge('tunnel_journal_queue_bytes', 'Journal bytes waiting to be written to disk', [], queuedBytes);
  metrics.gauge('tunnel_queued_bytes', 'Bytes buffered for slow HTTP visitors', [], () => http.queuedBytes);
  metrics.gauge('tunnel_sse_consumers', 'Open event streams', [], sseConsumers);
};

const SHARES: readonly ConnectionShare[] = ['visitors', 'control', 'api'];

const addShareGauges = (metrics: Metrics, admission: EdgeFigures['admission']): void => {
  const series = (name: string, help: string, value: (share: ConnectionShare) => number): void =>
    metrics.seriesOf(name, help, 'gauge', () => SHARES.map((share) => ({ labels: { share }, value: value(share) })));
  series('tunnel_connections_open', 'Open connections, by share', (share) => admission.used[share]);
  series('tunnel_connections_limit', 'Connection limit, by share', (share) => admission.limits[share]);
};

const addGroupSeries = (metrics: Metrics, { regionId, loadBalancing }: EdgeFigures): void => {
  if (loadBalancing === null) return;
  loadBalancing.groups.addTo(metrics, regionId);
  metrics.seriesOf('tunnel_alerts_total', 'Alerts about groups without a healthy member, by result', 'counter', () =>
    Object.entries(loadBalancing.alerts).flatMap(([destination, outcomes]) =>
      Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome, destination }, value })),
    ),
  );
  metrics.seriesOf(
    'tunnel_alerts_dropped_total',
    'Alerts not sent because a limit was reached, by limit',
    'counter',
    () => Object.entries(loadBalancing.droppedAlerts).map(([reason, value]) => ({ labels: { reason }, value })),
  );
};

const addUdpSeries = (metrics: Metrics, { ports: { udp }, datagramPaths }: EdgeFigures): void => {
  metrics.seriesOf('tunnel_udp_paths', 'Clients with udp tunnels, by datagram path', 'gauge', () =>
    Object.entries(datagramPaths().clients).map(([path, value]) => ({ labels: { path }, value })),
  );
  metrics.seriesOf('tunnel_udp_packets_refused_total', 'Packets dropped at the UDP ports of the edge', 'counter', () =>
    Object.entries(datagramPaths().refused).map(([reason, value]) => ({ labels: { reason }, value })),
  );
  metrics.gauge('tunnel_udp_flows', 'Active flows of udp tunnels', [], () => udp.connections);
  metrics.seriesOf('tunnel_udp_datagrams_total', 'Forwarded datagrams. in: from visitors', 'counter', () => [
    { labels: { direction: 'in' }, value: udp.totals.passedIn },
    { labels: { direction: 'out' }, value: udp.totals.datagramsOut },
  ]);
  metrics.seriesOf('tunnel_udp_dropped_total', 'Dropped datagrams, by reason', 'counter', () =>
    Object.entries({ ...udp.dropped, unopened: udp.dropped.unopened + datagramPaths().unopened }).map(
      ([reason, value]) => ({ labels: { reason }, value }),
    ),
  );
};

const addTlsSeries = (metrics: Metrics, { tls, handshakes }: EdgeFigures): void => {
  metrics.seriesOf('tunnel_tls_connections_total', 'Connections to the https port, by result', 'counter', () =>
    Object.entries(tls()).map(([kind, value]) => ({ labels: { kind }, value })),
  );
  metrics.seriesOf('tunnel_tls_handshakes_total', 'Completed TLS handshakes, full or resumed', 'counter', () =>
    Object.entries(handshakes).flatMap(([share, totals]) =>
      (['full', 'resumed'] as const).map((kind) => ({ labels: { share, kind }, value: totals[kind] })),
    ),
  );
};

const addPeerSeries = (metrics: Metrics, { peers }: EdgeFigures): void => {
  metrics.seriesOf('tunnel_p2p_peers', 'Subscribers of p2p tunnels, by path of new connections', 'gauge', () =>
    Object.entries(peers.counts).map(([path, value]) => ({ labels: { path }, value })),
  );
  metrics.seriesOf(
    'tunnel_p2p_relayed_bytes_total',
    'Bytes of p2p tunnels relayed by this edge, counted once',
    'counter',
    () => [{ labels: {}, value: peers.totals.bytesToClient + peers.totals.bytesToVisitor }],
  );
  metrics.seriesOf(
    'tunnel_p2p_direct_attempts_total',
    'Attempts of peers to connect directly, by result',
    'counter',
    () => Object.entries(peers.totals.attempts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  );
};

/** Adds restart counts. The supervisor provides the counts, because the supervisor survives the crash of a part. */
const addRestartSeries = (metrics: Metrics, { restarts }: EdgeFigures): void => {
  if (restarts === null) return;
  metrics.seriesOf('tunnel_restarts_total', 'Restarts of server processes after a crash', 'counter', () =>
    Object.entries(restarts()).map(([part, value]) => ({ labels: { part }, value })),
  );
};

const countOf = (tunnels: EdgeFigures['tunnels'], protocol: ShownProtocol): number => {
  let count = 0;
  for (const tunnel of tunnels.values()) if (showProtocol(tunnel.protocol) === protocol) count += 1;
  return count;
};

const addCounters = (metrics: Metrics, figures: EdgeFigures): (() => void)[] => {
  const { ports, http, peers, authFailures, clientsHeldBack, droppedLogLines, admission } = figures;
  const refusedBy: ReadonlyMap<string, number>[] = [
    admission.refusals,
    ...Object.values(ports).map(({ totals }) => totals.refused),
    peers.totals.refused,
  ];
  const refused = metrics.counter('tunnel_connections_refused_total', 'Rejected connections', ['reason']);
  const refusals = new Map<string, () => void>();
  return [
    ...followTraffic(metrics, figures.regionId, [
      ['http', http.totals],
      ...Object.entries(ports).map(([transport, { totals }]) => [transport, totals] as const),
      ['p2p', peers.totals],
    ]),
    follow(metrics.counter('tunnel_auth_failures_total', 'Rejected API keys'), {}, authFailures),
    follow(
      metrics.counter(
        'tunnel_clients_held_back_total',
        'Times the edge paused reading from a client that sent too many frames',
      ),
      {},
      clientsHeldBack,
    ),
    follow(
      metrics.counter('tunnel_journal_full_total', 'Times the disk was too slow for the journal'),
      {},
      () => figures.journalQueue()?.timesFull ?? 0,
    ),
    follow(
      metrics.counter('tunnel_log_lines_dropped_total', 'Log lines dropped because the log was not read fast enough'),
      {},
      droppedLogLines,
    ),
    follow(
      metrics.counter(
        'tunnel_trace_spans_dropped_total',
        'Spans dropped because the queue was full or the collector did not accept them',
      ),
      {},
      figures.droppedSpans,
    ),
    () => {
      for (const reason of refusedBy.flatMap((counts) => [...counts.keys()])) {
        if (refusals.has(reason)) continue;
        const count = () => refusedBy.reduce((sum, counts) => sum + (counts.get(reason) ?? 0), 0);
        refusals.set(reason, follow(refused, { reason }, count));
      }
      for (const bringUpToDate of refusals.values()) bringUpToDate();
    },
  ];
};

type Traffic = Pick<PortTotals, 'requests' | 'bytesToClient' | 'bytesToVisitor'>;

const followTraffic = (
  metrics: Metrics,
  region: string,
  traffic: readonly (readonly [protocol: string, totals: Traffic])[],
): (() => void)[] => {
  const requests = metrics.counter('tunnel_requests_total', 'Requests or connections forwarded to tunnels', [
    'protocol',
    'region',
  ]);
  const bytes = metrics.counter('tunnel_bytes_proxied_total', 'Bytes on tunnel streams. in: to the client', [
    'protocol',
    'region',
    'direction',
  ]);
  return traffic.flatMap(([protocol, totals]) => [
    follow(requests, { protocol, region }, () => totals.requests),
    follow(bytes, { protocol, region, direction: 'in' }, () => totals.bytesToClient),
    follow(bytes, { protocol, region, direction: 'out' }, () => totals.bytesToVisitor),
  ]);
};

const addHttpCounters = (metrics: Metrics, { regionId: region, http }: EdgeFigures): (() => void)[] => {
  const { totals } = http;
  const responses = metrics.counter('tunnel_http_responses_total', 'Responses to visitors of http tunnels', [
    'class',
    'region',
  ]);
  metrics.histogramOf(
    'tunnel_http_duration_seconds',
    'Time from the first byte of a request to the response headers',
    { region },
    totals.whole,
  );
  metrics.histogramOf(
    'tunnel_http_edge_seconds',
    'Time spent in this edge between the first byte of a request and the response headers',
    { region },
    totals.edge,
  );
  const cut = metrics.counter(
    'tunnel_http_queues_cut_total',
    'HTTP visitor connections closed because too many bytes were buffered',
    ['reason'],
  );
  return [
    follow(cut, { reason: 'overrun' }, () => totals.overruns),
    follow(cut, { reason: 'budget' }, () => totals.shed),
    ...STATUS_CLASSES.map((status) =>
      follow(responses, { class: `${status}xx`, region }, () => totals.responses[status] ?? 0),
    ),
  ];
};

/**
 * Returns a function that raises a counter to a total kept elsewhere. The counter starts at 0 at once, so that rates have a first data
 * point.
 */
const follow = (counter: Counter<string>, labels: Record<string, string>, total: () => number): (() => void) => {
  let seen = 0;
  counter.inc(labels, 0);
  return () => {
    const now = total();
    counter.inc(labels, now - seen);
    seen = now;
  };
};
