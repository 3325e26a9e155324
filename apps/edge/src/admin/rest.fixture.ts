// A REST server on port 0 with two accounts, and one tunnel for the operator and each account. Used by tests only.

import type { Fault } from '@tunnel/errors';
import type { ConnectionGate } from '@tunnel/http-shell';
import { plainAddress } from '@tunnel/rules/net';
import { MemberHealth, type Owner } from '@tunnel/rules/tunnels';
import { type Clock, createLogger, type Logger, Secret, sha256Hex, systemClock } from '@tunnel/runtime';
import { StandaloneBackend } from '../backend/standalone-backend.ts';
import { countersOf } from '../backend/tunnel-counters.fixture.ts';
import { CaptureService } from '../capture/capture-service.ts';
import { CaptureStore } from '../capture/capture-store.ts';
import type { CaptureRecorder } from '../capture/recorder.ts';
import type { ReplayRequest } from '../capture/replay.ts';
import { AuthFailures } from '../control/authentication.ts';
import { type GateOptions, openGate } from '../ingress/gate.fixture.ts';
import { NO_POLICY } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { MuxUpstream } from '../upstream/upstream.ts';
import { ALICE, BOB, GroupStage, OPERATOR } from './group.fixture.ts';
import { GroupFeed } from './group-feed.ts';
import type { RestDependencies } from './rest-context.ts';
import { RestServer } from './rest-server.ts';

export const ADMIN_TOKEN = 'admin-token';
export const PLATFORM_SECRET = 'secret-of-this-run';
export const ALICE_KEY = 'tnl_alice';
export const BOB_KEY = 'tnl_bob';

export const someTunnel = (tunnelId: string, owner: Owner, port = 20_000): Tunnel => ({
  tunnelId,
  sessionId: 'ses_1',
  name: 'db',
  protocol: 'tcp',
  label: String(port),
  publicUrl: `tcp://localhost:${port}`,
  endpoint: { kind: 'port', transport: 'tcp', port },
  group: null,
  assignedPort: port,
  http: null,
  flowIdleSecs: null,
  clientAddr: '127.0.0.1:5000',
  owner,
  connectedSince: Date.UTC(2030, 0, 1),
  counters: countersOf(3, 4096, 1),
  health: new MemberHealth(null),
  alertWebhook: null,
  policy: NO_POLICY,
  proxyProtocol: null,
  upstream: new MuxUpstream(),
});

export const httpTunnel = (tunnelId: string, owner: Owner): Tunnel => ({
  ...someTunnel(tunnelId, owner),
  protocol: 'http',
  label: tunnelId,
  endpoint: { kind: 'name', name: tunnelId },
  publicUrl: `http://${tunnelId}.localhost:8000`,
  assignedPort: null,
  http: { hostHeader: null, localProtocol: 'http1', capture: true },
});

const logger = createLogger({ level: 'silent', format: 'json' });

export interface RestFixture {
  /** Clock of the counter of wrong keys, in milliseconds; tests advance the time by hand. */
  readonly clock: { now: number };
  readonly tunnels: Map<string, Tunnel>;
  readonly groups: GroupStage;
  readonly feed: GroupFeed;
  readonly captures: CaptureStore;
  /** Stands in for the local service: returns the captured request of a replay. */
  onReplay: (request: ReplayRequest) => Promise<CaptureRecorder>;
  readonly gate: ConnectionGate;
  readonly closed: { tunnelId: string; fault: Fault }[];
  readonly url: string;
  readonly port: number;
  request(
    path: string,
    options?: { method?: string; token?: string; headers?: Record<string, string>; body?: RequestInit['body'] },
  ): Promise<Response>;
  stop(): Promise<void>;
}

const accounts = (): StandaloneBackend =>
  new StandaloneBackend({
    clock: systemClock,
    logger: createLogger({ level: 'silent', format: 'json' }),
    names: { hold_days: 0, assigned_hold_hours: 24, grace_days: 0 },
    adminToken: new Secret(ADMIN_TOKEN),
    keys: [
      { account: 'alice', sha256: sha256Hex(ALICE_KEY), reserved: [], domains: [] },
      { account: 'bob', sha256: sha256Hex(BOB_KEY), reserved: [], domains: [] },
    ],
  });

export interface RestOptions {
  readonly perMinute?: number;
  readonly failing?: boolean;
  /** Clock of the event streams and groups. */
  readonly clock?: Clock;
  readonly gate?: GateOptions;
  readonly logger?: Logger;
  /** Listeners of udp tunnels. By default no udp port is bound. */
  readonly udp?: RestDependencies['udp'];
  /** Peers of p2p tunnels. By default there are no peers. */
  readonly peers?: RestDependencies['peers'];
  /** Last alert of a group member. By default no alert has been sent. */
  readonly lastAlertOf?: RestDependencies['lastAlertOf'];
  /** Certificates of the edge. By default there are no certificates. */
  readonly certificates?: RestDependencies['certificates'];
  readonly monotonic?: () => number;
  /** Called when a request has arrived. */
  readonly onRequest?: () => void;
}

const someTunnels = (): Map<string, Tunnel> =>
  new Map([
    ['tun_op', someTunnel('tun_op', OPERATOR, 20_000)],
    ['tun_alice', someTunnel('tun_alice', ALICE, 20_001)],
    ['tun_bob', someTunnel('tun_bob', BOB, 20_002)],
  ]);

type Shared = Pick<RestFixture, 'clock' | 'tunnels' | 'groups' | 'feed' | 'captures' | 'closed' | 'gate'>;

const dependencies = (
  { clock, tunnels, groups, feed, captures, closed, gate }: Shared,
  options: RestOptions,
  replay: (request: ReplayRequest) => Promise<CaptureRecorder>,
): RestDependencies => ({
  backend: accounts(),
  platformSecret: new Secret(PLATFORM_SECRET),
  tunnels,
  groups: groups.directory,
  feed,
  lastAlertOf: options.lastAlertOf ?? (() => null),
  udp: options.udp ?? { at: () => undefined },
  peers: options.peers ?? { of: () => [], dismiss: () => false },
  datagramPathOf: () => ({ path: 'carrier', reason: 'off' }),
  closeTunnel: (tunnelId, fault) => {
    closed.push({ tunnelId, fault });
    return tunnels.delete(tunnelId);
  },
  certificates: options.certificates ?? { acmeCertificates: null, files: () => null },
  operatorRules: 2,
  captures: new CaptureService({ store: captures, tunnels, replays: { replay } }),
  admission: gate.admission,
  monotonic: options.monotonic ?? (() => systemClock.monotonic()),
  now: () => systemClock.now(),
  status: () => {
    if (options.failing === true) throw new Error('the password is hunter2');
    return { sessions: 1, tunnels: tunnels.size, uptime_secs: 12.5, draining: false };
  },
  domain: 'localhost',
  region: { id: 'local', name: 'Local', location: '' },
  version: '0.1.0',
  authFailures: new AuthFailures({
    perMinute: options.perMinute ?? 60,
    clock: { ...systemClock, monotonic: () => clock.now },
  }),
  callerAddress: plainAddress,
  newRequestId: () => {
    options.onRequest?.();
    return 'req_new';
  },
  logger: options.logger ?? logger,
});

export const startRest = async (options: RestOptions = {}): Promise<RestFixture> => {
  const tunnels = someTunnels();
  const feed = new GroupFeed({ regionId: 'local', clock: options.clock ?? systemClock });
  const shared: Shared = {
    clock: { now: Date.UTC(2030, 0, 1) },
    tunnels,
    groups: new GroupStage(options.clock ?? systemClock, [feed], tunnels),
    feed,
    captures: new CaptureStore({ enabled: true, bodies: true, accountShare: 1, clock: systemClock, runId: 'run' }),
    closed: [],
    gate: openGate(options.gate),
  };
  const deps = dependencies(shared, options, (request) => fixture.onReplay(request));
  const server = new RestServer({ host: '127.0.0.1', port: 0 }, { gate: shared.gate }, deps);
  await server.start();
  const { port } = server.address;
  const url = `http://127.0.0.1:${port}`;
  const fixture: RestFixture = {
    ...shared,
    onReplay: () => Promise.reject(new Error('no replay was expected')),
    url,
    port,
    request: (path, { method = 'GET', token, headers = {}, body } = {}) =>
      fetch(url + path, {
        method,
        headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
        ...(body === undefined ? {} : { body, duplex: 'half' }),
      }),
    stop: () => server.stop(),
  };
  return fixture;
};
