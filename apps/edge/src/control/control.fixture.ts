// A control plane with real ports and a scripted backend, for clients on bare WebSockets. Used by tests only.

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { loadServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import type { ConnectionGate } from '@tunnel/http-shell';
import type { ReportInternalError } from '@tunnel/mux';
import { type CompiledPolicy, compilePolicy, type Policy } from '@tunnel/policy';
import { InFlight } from '@tunnel/rules/rate';
import { type Owner, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { type Clock, createLogger, type Logger } from '@tunnel/runtime';
import { rethrow } from '@tunnel/testkit';
import type {
  Backend,
  KeyVerdict,
  Revocation,
  TunnelAdmissionRequest,
  TunnelClosed,
  TunnelOpened,
} from '../backend/backend.ts';
import { ReservedNameTable } from '../backend/names/reserved-names.ts';
import type { DomainKeepers } from '../backend/names/verified-domains.ts';
import { type GateOptions, openGate } from '../ingress/gate.fixture.ts';
import { makePortIngresses, type PortIngress } from '../ingress/kinds.ts';
import { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import { PeerRelays } from '../ingress/p2p/peer-relays.ts';
import type { UdpListeners } from '../ingress/udp/udp-listeners.ts';
import { NODE_DIGESTS } from '../policy/node-digests.ts';
import { Balancer } from '../routing/balancer.ts';
import { EndpointRegistry, NameRegistry } from '../routing/endpoints.ts';
import { Groups, type GroupWatcher } from '../routing/groups.ts';
import { Registry } from '../routing/registry.ts';
import { AuthFailures } from './authentication.ts';
import { ControlPlane } from './control-plane.ts';
import { accountBucketsOf, ControlRateLimiter, type ControlRateLimits } from './control-rate-limiter.rules.ts';
import { DatagramPorts } from './datagram-ports.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import { PolicyStore } from './policy-store.ts';
import type { SessionLimits } from './sessions.ts';

const HOST = '127.0.0.1';
const silent = createLogger({ level: 'silent', format: 'json' });

/** Backend with replies set by the test. The keys `op`, `alice`, `alice-2` and `bob` are valid; the key `away` cannot be checked. */
export class ScriptedBackend implements Backend {
  readonly reserved = new ReservedNameTable();
  readonly asked: TunnelAdmissionRequest[] = [];
  /** Ids of tunnels reported with admissionEnded(). */
  readonly sought: string[] = [];
  onAsked: (event: TunnelAdmissionRequest) => Promise<Fault | null> = async () => null;
  readonly opened: TunnelOpened[] = [];
  readonly closed: TunnelClosed[] = [];
  readonly refused = new Set<string>();
  revoke: (revocation: Revocation) => void = () => {};
  changeDomains: (keepers: DomainKeepers) => void = () => {};

  async verifyKey(token: string): Promise<KeyVerdict> {
    if (token === 'away') return { ok: false, fault: new Fault('AUTH_BACKEND_AWAY') };
    const account = /^(alice|bob)/.exec(token)?.[1];
    if (this.refused.has(token) || (account === undefined && token !== 'op')) {
      return { ok: false, fault: new Fault('AUTH_TOKEN_INVALID') };
    }
    const owner: Owner = account === undefined ? { kind: 'operator' } : { kind: 'account', accountId: account };
    return { ok: true, owner, keyId: `key-${token}` };
  }

  async admitTunnel(event: TunnelAdmissionRequest): Promise<Fault | null> {
    this.asked.push(event);
    return this.onAsked(event);
  }

  admissionEnded(tunnelId: string): void {
    this.sought.push(tunnelId);
  }

  streamEnded(): void {}

  ready(): void {}

  tunnelOpened(event: TunnelOpened): void {
    this.opened.push(event);
  }

  tunnelClosed(event: TunnelClosed): void {
    this.closed.push(event);
  }

  onRevoked(listener: (revocation: Revocation) => void): () => void {
    this.revoke = listener;
    return () => {
      this.revoke = () => {};
    };
  }

  onDomainsChanged(listener: (keepers: DomainKeepers) => void): () => void {
    this.changeDomains = listener;
    return () => {
      this.changeDomains = () => {};
    };
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}
}

export interface ControlFixture {
  readonly gate: ConnectionGate;
  readonly control: ControlPlane;
  readonly backend: ScriptedBackend;
  readonly endpoints: EndpointRegistry;
  readonly tunnels: Registry;
  readonly policies: PolicyStore;
  readonly listeners: PortIngress;
  readonly udp: UdpListeners;
  readonly peers: PeerJoins;
  readonly relays: PeerRelays;
  readonly port: number;
  readonly range: { readonly from: number; readonly to: number };
  stop(): Promise<void>;
}

export interface ControlFixtureOptions {
  readonly clock: Clock;
  readonly ports?: number;
  readonly tunnelsPerSession?: number;
  readonly connectionsPerTunnel?: number;
  readonly peersPerTunnel?: number;
  /** Receives internal errors in relay streams. By default an internal error fails the test. */
  readonly reportRelay?: ReportInternalError;
  readonly failuresPerMinute?: number;
  readonly loadBalancing?: boolean;
  /** Public https port of the edge. By default the edge has no https port. */
  readonly httpsPort?: number;
  readonly switchedOff?: readonly TunnelProtocol[];
  readonly loginProviders?: readonly string[];
  readonly policyBytesMax?: number;
  /** Settings `[udp] path` and `[p2p] direct`, both off by default. The datagram ports are any free ports. */
  readonly datagrams?: { readonly path?: 'auto' | 'carrier'; readonly direct?: boolean };
  readonly capabilities?: readonly string[];
  readonly watchers?: readonly GroupWatcher[];
  readonly checkAlertUrl?: (url: string, withinMs: number) => Promise<string | null>;
  readonly gate?: GateOptions;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  readonly controlRateLimits?: ControlRateLimits;
  readonly sessionLimits?: SessionLimits;
  readonly logger?: Logger;
}

/** Rate limits high enough never to hold a client back. */
export const ANY_PACE: ControlRateLimits = {
  connection: { perSecond: 1e9, burst: 1e9 },
  account: { perSecond: 1e9, burst: 1e9 },
  perTurn: 1e9,
  pauseMinMs: 1,
};

export const paceOf = (): ControlRateLimiter => new ControlRateLimiter(ANY_PACE, accountBucketsOf(ANY_PACE));

export const startControl = async (options: ControlFixtureOptions): Promise<ControlFixture> => {
  const { clock, logger = silent } = options;
  const { trustedProxies = [] } = options.gate ?? {};
  const gate = openGate({ clock, ...options.gate });
  const backend = new ScriptedBackend();
  const compile = (policy: Policy): CompiledPolicy => compilePolicy(policy, NODE_DIGESTS);
  const policies = new PolicyStore({ clock, compile, bytesMax: options.policyBytesMax });
  const tunnels = new Registry([policies]);
  const counts = new InFlight({ perKey: options.connectionsPerTunnel ?? 100 });
  const balancer = new Balancer({ counts, random: Math.random });
  const flowBalancer = new Balancer({ counts: new InFlight({ perKey: 100 }), random: Math.random });
  const { guard, ...range } = await claimRange(options.ports ?? 4);
  const { udp, limits } = loadServerConfig({ env: {}, overrides: {} });
  const config = { udp, limits: { ...limits, udp_port_range: [range.from, range.to] as [number, number] } };
  const ingresses = makePortIngresses({
    host: HOST,
    tunnels,
    balancer,
    flowBalancer,
    config,
    gate,
    clock,
    logger,
    report: rethrow,
    pathPorts: () => [],
  });
  const listeners = ingresses.tcp;
  const peers = new PeerJoins({
    tunnels,
    clock,
    logger,
    peersPerTunnel: options.peersPerTunnel ?? 100,
    tell: (sessionId, message) => control.tell(sessionId, message),
  });
  const report = options.reportRelay ?? rethrow;
  const relays = new PeerRelays({ joins: peers, tunnels, balancer, clock, logger, report });
  const endpoints = new EndpointRegistry({
    listeners: ingresses,
    peerNames: peers,
    portRanges: { tcp: range, udp: range },
    accountShare: 1,
    names: new NameRegistry({ clock, random: Math.random }),
    reserved: backend.reserved,
    clock,
    random: () => 0,
  });
  const watchers = [...(options.watchers ?? []), policies];
  const groups = new Groups({ domain: 'edge.test', clock, logger, endpoints, tunnels, policies, watchers });
  const { path = 'carrier', direct = false } = options.datagrams ?? {};
  const datagramPorts = new DatagramPorts(
    {
      server: { host: HOST },
      udp: { enabled: true, path, ports: [0, 0] },
      p2p: { enabled: true, direct },
      limits: { udp_port_range: [range.from, range.to] },
    },
    { endpoints, logger, report: rethrow },
  );
  await datagramPorts.start();
  const control = new ControlPlane({
    datagramPorts,
    host: HOST,
    port: 0,
    domain: 'edge.test',
    region: { id: 'local', name: 'Local' },
    localPorts: () => [],
    tunnelsPerSession: options.tunnelsPerSession ?? 100,
    trustedProxies,
    gate,
    clock,
    logger,
    report: rethrow,
    backend,
    failures: new AuthFailures({ clock, perMinute: options.failuresPerMinute ?? 60 }),
    publicHttp: () => ({ scheme: 'http', port: 8000 }),
    httpsPort: () => options.httpsPort ?? null,
    endpoints,
    groups,
    peers,
    relays,
    udp: ingresses.udp,
    tunnels,
    policies,
    loginProviders: options.loginProviders ?? [],
    loadBalancing: options.loadBalancing ?? true,
    switchedOff: options.switchedOff ?? [],
    ...(options.capabilities === undefined ? {} : { capabilities: options.capabilities }),
    checkAlertUrl: options.checkAlertUrl ?? refuseByName,
    controlRateLimits: options.controlRateLimits,
    sessionLimits: options.sessionLimits,
  });
  await control.start(options.tls ?? null);
  const stop = async (): Promise<void> => {
    control.cut();
    await datagramPorts.stop();
    for (const ports of Object.values(ingresses)) {
      await ports.closeAll();
      ports.resetConnections();
    }
    guard.close();
  };
  const { port } = control.address;
  const parts = { control, gate, backend, endpoints, tunnels, policies, listeners, udp: ingresses.udp, peers, relays };
  return { ...parts, port, range, stop };
};

const refuseByName = async (url: string): Promise<string | null> =>
  url.includes('refused') ? `alert webhook rejected: ${url}` : null;

const BLOCK_PORTS = 8;

/**
 * Claims a range of consecutive free ports below the ephemeral ports of the kernel. Tests in other processes claim ranges in the same
 * way: a block belongs to the process that listens on its first port.
 */
const claimRange = async (size: number): Promise<{ from: number; to: number; guard: Server }> => {
  for (;;) {
    const first = 21_000 + BLOCK_PORTS * Math.floor(Math.random() * 1000);
    const guard = await tryPort(first);
    if (guard === null) continue;
    const from = first + 1;
    const servers = await Promise.all(Array.from({ length: size }, (_, n) => tryPort(from + n)));
    for (const server of servers) server?.close();
    if (servers.every((server) => server !== null)) return { from, to: from + size - 1, guard };
    guard.close();
  }
};

export const tryPort = async (port: number): Promise<Server | null> => {
  const server = createServer().listen(port, HOST);
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return null;
  }
};

export const WINDOW_MS = RESUME_WINDOW_MS;
