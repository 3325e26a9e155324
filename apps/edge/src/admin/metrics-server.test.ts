import type { ConnectionGate } from '@tunnel/http-shell';
import { DROP_REASONS } from '@tunnel/rules/flows';
import { createLogger, createMetrics } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ReservedKind } from '../backend/names/reserved-names.ts';
import { openGate } from '../ingress/gate.fixture.ts';
import { HttpTotals } from '../ingress/http/http-totals.ts';
import { PeerTotals } from '../ingress/p2p/peer-joins.ts';
import { RelayTotals } from '../ingress/tcp/relay-totals.ts';
import { noTlsTotals } from '../ingress/tls/tls-totals.ts';
import { type DropCounts, noDrops, UdpTotals } from '../ingress/udp/udp-totals.ts';
import { EdgeMetrics, MetricsServer } from './metrics-server.ts';
import type { PolicyAnswers } from './policy-metrics.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
let totals: RelayTotals;
let http: HttpTotals;
let udp: UdpTotals;
let dropped: DropCounts;
let peers: PeerTotals;
let sessions: () => number;
let server: MetricsServer;
let gate: ConnectionGate;
let answers: PolicyAnswers[];

beforeEach(async () => {
  totals = new RelayTotals();
  http = new HttpTotals();
  udp = new UdpTotals();
  dropped = noDrops();
  peers = new PeerTotals();
  sessions = () => 2;
  answers = [];
  gate = openGate({ perNetwork: 1 });
  const figures = {
    version: '1.2.3',
    regionId: 'local',
    tunnels: { values: () => [{ protocol: 'tcp' as const }, { protocol: 'https' as const }] },
    ports: { tcp: { totals, connections: 5 }, udp: { totals: udp, connections: 2, dropped } },
    http: { totals: http, connections: 4, queuedBytes: 0 },
    tls: () => ({ ...noTlsTotals(), passthrough: 3 }),
    handshakes: { visitors: { full: 5, resumed: 4 }, control: { full: 0, resumed: 0 } },
    peers: { totals: peers, counts: { direct: 1, relay: 2 } },
    sessions: () => sessions(),
    carriers: () => 8,
    streams: () => 7,
    datagramPaths: () => ({ clients: { udp: 3, carrier: 1 }, refused: { forged: 2 }, unopened: 0 }),
    authFailures: () => 1,
    clientsHeldBack: () => 3,
    droppedLogLines: () => 0,
    droppedSpans: () => 0,
    internalErrors: new Map([['socket.data', 3]]),
    journalQueue: () => ({ bytes: 70, timesFull: 2 }),
    reserved: { countOf: (kind: ReservedKind) => ({ subdomain: 3, tcp: 1, udp: 0 })[kind] },
    certificates: { acmeCertificates: null, files: () => null, now: () => 0 },
    sseConsumers: () => 6,
    admission: gate.admission,
    restarts: () => ({ edge: 2, platform: 0 }),
    backups: () => ({ lastSuccessSecs: 1_790_000_000, failures: 1, archiveFailures: 7 }),
    platformSeries: async () => '# TYPE tunnel_oauth_grants gauge\ntunnel_oauth_grants 4\n',
    policy: {
      answers: () => answers,
      passwordChecks: () => ({ ok: 1, wrong: 2, cached: 30, busy: 0 }),
      providerRequests: () => ({ ok: 4 }),
      limiterKeys: () => 12,
      heldBytes: () => 4096,
    },
    loadBalancing: null,
  };
  server = new MetricsServer({ host: '127.0.0.1', port: 0 }, gate, new EdgeMetrics(createMetrics(), figures), logger);
  await server.start();
});

afterEach(() => server.stop());

const get = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${server.address.port}${path}`, { method });

/** Scrapes the metrics and returns values by series name (with labels), without comment lines. */
const scrape = async (): Promise<Record<string, number>> => {
  const response = await get('/metrics');
  expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
};

it('every series is present in the first scrape', async () => {
  const series = await scrape();
  for (const name of Object.keys(series))
    if (name.includes('_seconds') && !name.includes('timestamp')) delete series[name];
  expect(series).toEqual({
    tunnel_active_sessions: 2,
    tunnel_active_tunnels_http: 1,
    tunnel_active_tunnels_tcp: 1,
    tunnel_active_tunnels_udp: 0,
    tunnel_active_tunnels_p2p: 0,
    tunnel_active_carriers: 8,
    tunnel_active_streams: 7,
    tunnel_active_connections: 9,
    tunnel_queued_bytes: 0,
    'tunnel_tls_connections_total{kind="terminated"}': 0,
    'tunnel_tls_connections_total{kind="passthrough"}': 3,
    'tunnel_tls_connections_total{kind="challenge"}': 0,
    'tunnel_tls_connections_total{kind="control"}': 0,
    'tunnel_tls_connections_total{kind="no_certificate"}': 0,
    'tunnel_tls_connections_total{kind="failed"}': 0,
    'tunnel_tls_handshakes_total{share="visitors",kind="full"}': 5,
    'tunnel_tls_handshakes_total{share="visitors",kind="resumed"}': 4,
    'tunnel_tls_handshakes_total{share="control",kind="full"}': 0,
    'tunnel_tls_handshakes_total{share="control",kind="resumed"}': 0,
    'tunnel_http_queues_cut_total{reason="overrun"}': 0,
    'tunnel_http_queues_cut_total{reason="budget"}': 0,
    tunnel_sse_consumers: 6,
    'tunnel_connections_open{share="visitors"}': 0,
    'tunnel_connections_open{share="control"}': 0,
    'tunnel_connections_open{share="api"}': 1,
    'tunnel_connections_limit{share="visitors"}': 1000,
    'tunnel_connections_limit{share="control"}': 1000,
    'tunnel_connections_limit{share="api"}': 1000,
    'tunnel_certificates{state="none"}': 0,
    'tunnel_certificates{state="ordering"}': 0,
    'tunnel_certificates{state="valid"}': 0,
    'tunnel_certificates{state="renewing"}': 0,
    'tunnel_certificates{state="failing"}': 0,
    'tunnel_reserved_names{kind="subdomain"}': 3,
    'tunnel_reserved_names{kind="tcp"}': 1,
    'tunnel_reserved_names{kind="udp"}': 0,
    [`tunnel_build_info{version="1.2.3",node="${process.versions.node}"}`]: 1,
    'tunnel_restarts_total{part="edge"}': 2,
    'tunnel_restarts_total{part="platform"}': 0,
    tunnel_backup_last_success_timestamp_seconds: 1_790_000_000,
    tunnel_backup_failures_total: 1,
    tunnel_wal_archive_failures_total: 7,
    tunnel_oauth_grants: 4,
    'tunnel_requests_total{protocol="http",region="local"}': 0,
    'tunnel_bytes_proxied_total{protocol="http",region="local",direction="in"}': 0,
    'tunnel_bytes_proxied_total{protocol="http",region="local",direction="out"}': 0,
    'tunnel_requests_total{protocol="tcp",region="local"}': 0,
    'tunnel_bytes_proxied_total{protocol="tcp",region="local",direction="in"}': 0,
    'tunnel_bytes_proxied_total{protocol="tcp",region="local",direction="out"}': 0,
    'tunnel_requests_total{protocol="udp",region="local"}': 0,
    'tunnel_bytes_proxied_total{protocol="udp",region="local",direction="in"}': 0,
    'tunnel_bytes_proxied_total{protocol="udp",region="local",direction="out"}': 0,
    'tunnel_requests_total{protocol="p2p",region="local"}': 0,
    'tunnel_bytes_proxied_total{protocol="p2p",region="local",direction="in"}': 0,
    'tunnel_bytes_proxied_total{protocol="p2p",region="local",direction="out"}': 0,
    'tunnel_p2p_peers{path="direct"}': 1,
    'tunnel_p2p_peers{path="relay"}': 2,
    tunnel_p2p_relayed_bytes_total: 0,
    ...Object.fromEntries(
      Object.keys(peers.attempts).map((outcome) => [`tunnel_p2p_direct_attempts_total{outcome="${outcome}"}`, 0]),
    ),
    tunnel_udp_flows: 2,
    'tunnel_udp_paths{path="udp"}': 3,
    'tunnel_udp_paths{path="carrier"}': 1,
    'tunnel_udp_packets_refused_total{reason="forged"}': 2,
    'tunnel_udp_datagrams_total{direction="in"}': 0,
    'tunnel_udp_datagrams_total{direction="out"}': 0,
    ...Object.fromEntries(DROP_REASONS.map((reason) => [`tunnel_udp_dropped_total{reason="${reason}"}`, 0])),
    'tunnel_policy_password_checks_total{result="ok"}': 1,
    'tunnel_policy_password_checks_total{result="wrong"}': 2,
    'tunnel_policy_password_checks_total{result="cached"}': 30,
    'tunnel_policy_password_checks_total{result="busy"}': 0,
    'tunnel_policy_provider_requests_total{result="ok"}': 4,
    tunnel_policy_limiter_keys: 12,
    tunnel_policy_held_bytes: 4096,
    tunnel_auth_failures_total: 1,
    tunnel_clients_held_back_total: 3,
    tunnel_journal_full_total: 2,
    tunnel_journal_queue_bytes: 70,
    tunnel_log_lines_dropped_total: 0,
    tunnel_trace_spans_dropped_total: 0,
    'tunnel_internal_errors_total{where="socket.data"}': 3,
    ...Object.fromEntries(
      [1, 2, 3, 4, 5].map((n) => [`tunnel_http_responses_total{class="${n}xx",region="local"}`, 0]),
    ),
  });
});

it('counters add each relayed connection and byte once across scrapes', async () => {
  totals.requests = 3;
  totals.bytesToClient = 100;
  totals.bytesToVisitor = 5_000_000_000;
  totals.countRefusal('tunnel-limit');
  await scrape();
  totals.requests = 4;
  totals.countRefusal('tunnel-limit');
  expect(await scrape()).toMatchObject({
    'tunnel_requests_total{protocol="tcp",region="local"}': 4,
    'tunnel_bytes_proxied_total{protocol="tcp",region="local",direction="in"}': 100,
    'tunnel_bytes_proxied_total{protocol="tcp",region="local",direction="out"}': 5_000_000_000,
    'tunnel_connections_refused_total{reason="tunnel-limit"}': 2,
  });
});

it('policy responses are counted by action and status, starting with the first response', async () => {
  answers = [{ action: 'auth', status: 401, count: 3 }];
  await scrape();
  answers = [
    { action: 'auth', status: 401, count: 5 },
    { action: 'deny', status: 403, count: 1 },
  ];
  expect(await scrape()).toMatchObject({
    'tunnel_policy_answers_total{action="auth",status="401"}': 5,
    'tunnel_policy_answers_total{action="deny",status="403"}': 1,
  });
});

it('datagrams are counted by direction, and dropped datagrams by reason', async () => {
  udp.requests = 2;
  udp.datagramsIn = 5;
  udp.datagramsOut = 4;
  udp.bytesToClient = 70;
  dropped.behind = 3;
  dropped['too-large'] = 1;
  expect(await scrape()).toMatchObject({
    'tunnel_requests_total{protocol="udp",region="local"}': 2,
    'tunnel_bytes_proxied_total{protocol="udp",region="local",direction="in"}': 70,
    'tunnel_udp_datagrams_total{direction="in"}': 5,
    'tunnel_udp_datagrams_total{direction="out"}': 4,
    'tunnel_udp_dropped_total{reason="behind"}': 3,
    'tunnel_udp_dropped_total{reason="too-large"}': 1,
  });
});

it('joins and relayed bytes of p2p tunnels are counted, and attempts at a direct path by outcome', async () => {
  peers.requests = 2;
  peers.bytesToClient = 30;
  peers.bytesToVisitor = 12;
  peers.attempts['random-ports'] = 3;
  peers.countRefusal('limit');
  expect(await scrape()).toMatchObject({
    'tunnel_requests_total{protocol="p2p",region="local"}': 2,
    'tunnel_bytes_proxied_total{protocol="p2p",region="local",direction="in"}': 30,
    tunnel_p2p_relayed_bytes_total: 42,
    'tunnel_p2p_direct_attempts_total{outcome="random-ports"}': 3,
    'tunnel_connections_refused_total{reason="limit"}': 1,
  });
});

it('responses are counted by class; total time and time within the edge have buckets', async () => {
  http.requests = 3;
  http.bytesToVisitor = 7;
  http.onResponse(200, 3, 0.06);
  http.onResponse(204, 70_000, 2000);
  http.onResponse(502, 1, null);
  expect(await scrape()).toMatchObject({
    'tunnel_requests_total{protocol="http",region="local"}': 3,
    'tunnel_bytes_proxied_total{protocol="http",region="local",direction="out"}': 7,
    'tunnel_http_responses_total{class="2xx",region="local"}': 2,
    'tunnel_http_responses_total{class="5xx",region="local"}': 1,
    'tunnel_http_duration_seconds_bucket{le="0.001",region="local"}': 1,
    'tunnel_http_duration_seconds_bucket{le="0.0025",region="local"}': 1,
    'tunnel_http_duration_seconds_bucket{le="0.005",region="local"}': 2,
    'tunnel_http_duration_seconds_bucket{le="60",region="local"}': 2,
    'tunnel_http_duration_seconds_bucket{le="+Inf",region="local"}': 3,
    'tunnel_http_duration_seconds_count{region="local"}': 3,
    'tunnel_http_duration_seconds_sum{region="local"}': 70.004,
    'tunnel_http_edge_seconds_bucket{le="0.00005",region="local"}': 0,
    'tunnel_http_edge_seconds_bucket{le="0.0001",region="local"}': 1,
    'tunnel_http_edge_seconds_count{region="local"}': 2,
  });
});

it('only GET and HEAD of /metrics are served; other requests get a 404', async () => {
  expect((await get('/')).status).toBe(404);
  expect((await get('/metrics/more')).status).toBe(404);
  expect((await get('/metrics', 'POST')).status).toBe(404);
  expect((await get('/metrics', 'HEAD')).status).toBe(200);
});

it('a figure that cannot be read fails one scrape with a 500, and the next scrape works', async () => {
  sessions = () => {
    throw new Error('no');
  };
  expect((await get('/metrics')).status).toBe(500);
  sessions = () => 1;
  expect((await get('/metrics')).status).toBe(200);
});

it('connections refused at the gate and by the relay share one counter, by reason', async () => {
  totals.countRefusal('tunnel-limit');
  gate.admission.enter('tcp', '192.0.2.1', 0);
  gate.admission.enter('tcp', '192.0.2.1', 0);
  const series = await scrape();
  expect(series['tunnel_connections_refused_total{reason="tunnel-limit"}']).toBe(1);
  expect(series['tunnel_connections_refused_total{reason="address-limit"}']).toBe(1);
  expect(series['tunnel_connections_open{share="visitors"}']).toBe(1);
});

it('a metrics port in use is reported with the config key that sets the port', async () => {
  const { port } = server.address;
  const second = new MetricsServer({ host: '127.0.0.1', port }, gate, {} as never, logger);
  await expect(second.start()).rejects.toMatchObject({
    code: 'CONFIG_PORT_TAKEN',
    values: { key: '[server] metrics_port' },
  });
});
