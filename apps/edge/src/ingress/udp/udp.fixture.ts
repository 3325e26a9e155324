// Public ports of UDP tunnels on loopback, with a real client session behind them and plain sockets as visitors. Used by tests only.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { ConnectionGate } from '@tunnel/http-shell';
import type { DatagramStream } from '@tunnel/mux';
import { CAPABILITIES, type StreamHead } from '@tunnel/protocol';
import { FlowAddresses, type FlowRules } from '@tunnel/rules/flows';
import { InFlight } from '@tunnel/rules/rate';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { createLogger, type Logger } from '@tunnel/runtime';
import { eventually, FakeClock, freePort, rethrow, type SessionPair, sessionPair } from '@tunnel/testkit';
import { expect } from 'vitest';
import { TunnelCounters } from '../../backend/tunnel-counters.ts';
import { Balancer } from '../../routing/balancer.ts';
import { NO_POLICY } from '../../routing/route-policy.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { MuxUpstream } from '../../upstream/upstream.ts';
import { openGate } from '../gate.fixture.ts';
import { FlowAccounts } from './flow-accounts.rules.ts';
import { UdpListeners } from './udp-listeners.ts';
import type { DecideFlow } from './udp-port.ts';
import { type DropCounts, UdpTotals } from './udp-totals.ts';

export const HOST = '127.0.0.1';

type OnFlow = (stream: DatagramStream, head: StreamHead) => void;

/** A client with a service that echoes datagrams. */
export const echoing: OnFlow = (stream) => {
  stream.accept();
  stream.read({
    onDatagram: (bytes, start, end) => void stream.send(bytes, start, end),
    onReset: () => {},
    abandon: rethrow,
  });
};

export const refusing: OnFlow = (stream) => stream.refuse({ code: 'dial-refused', text: 'no local socket' });

/** A visitor with an address and a port, and the datagrams sent to the visitor. */
export class Visitor {
  readonly socket: Socket;
  readonly heard: string[] = [];
  /** Sender addresses of the received datagrams. */
  readonly from: string[] = [];
  readonly #to: number;

  private constructor(socket: Socket, to: number) {
    this.socket = socket;
    this.#to = to;
    socket.on('error', () => {});
    socket.on('message', (bytes, { address, port }) => {
      this.heard.push(bytes.toString('latin1'));
      this.from.push(`${address}:${port}`);
    });
  }

  static async of(to: number, host = HOST): Promise<Visitor> {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.bind(0, host);
    await once(socket, 'listening');
    return new Visitor(socket, to);
  }

  get name(): string {
    const { address, port } = this.socket.address();
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
  }

  say(text: string | Buffer): void {
    this.sayTo(this.socket.address().address, text);
  }

  /** Sends a datagram to the port of the tunnel at the given address. */
  sayTo(host: string, text: string | Buffer): void {
    this.socket.send(Buffer.from(text as string), this.#to, host);
  }

  /** Sends text and waits until the same text comes back. */
  async echo(text: string): Promise<void> {
    const before = this.heard.length;
    this.say(text);
    await eventually(() => expect(this.heard.slice(before)).toEqual([text]));
  }
}

export interface UdpStand {
  readonly listeners: UdpListeners;
  readonly clock: FakeClock;
  readonly gate: ConnectionGate;
  readonly counts: InFlight;
  readonly totals: UdpTotals;
  readonly tunnel: Tunnel;
  readonly upstream: MuxUpstream;
  /** Heads of the streams offered to the client. */
  readonly heads: StreamHead[];
  readonly reported: string[];
  /** The registry's tunnel for a port. */
  readonly routes: Map<number, Tunnel>;
  readonly ended: { count: number };
  pair: SessionPair;
  /** Ends the client's session, so that the tunnel has no session. */
  lose(): void;
  /** Gives the client a new session. */
  comeBack(): Promise<void>;
  /** Opens a port and assigns the tunnel to it. */
  open(account?: string): Promise<number>;
  visitor(port: number, host?: string): Promise<Visitor>;
  dropped(): Partial<DropCounts>;
}

export interface UdpStandOptions {
  readonly onFlow?: OnFlow;
  readonly rules?: Partial<FlowRules>;
  readonly perAddress?: number;
  readonly perTunnel?: number;
  /** Limit of flows for the whole edge, and the share of a single account. */
  readonly flowsMax?: number;
  readonly accountShare?: number;
  /** Maximum number of refused flows that are remembered. */
  readonly deniedMax?: number;
  readonly decide?: DecideFlow;
  readonly host?: string;
  readonly range?: { readonly from: number; readonly to: number };
  readonly logger?: Logger;
}

const RULES: FlowRules = {
  flowsPerTunnel: 100,
  idleMs: 60_000,
  answeredIdleMs: 10_000,
  newFlowsPerSecond: 0,
  unconfirmedReplyBytes: 8192,
};

export const tunnelOn = (upstream: MuxUpstream, tunnelId = 'tun_1'): Tunnel => ({
  tunnelId,
  sessionId: 'ses_1',
  name: 'dns',
  protocol: 'udp',
  label: '20100',
  publicUrl: 'udp://localhost:20100',
  endpoint: { kind: 'port', transport: 'udp', port: 20_100 },
  group: null,
  assignedPort: 20_100,
  http: null,
  flowIdleSecs: null,
  clientAddr: '127.0.0.1:1',
  owner: { kind: 'operator' },
  connectedSince: 0,
  counters: new TunnelCounters(),
  health: new MemberHealth(null),
  alertWebhook: null,
  policy: NO_POLICY,
  proxyProtocol: null,
  upstream,
});

/** Holds the parts of a test. clear() ends them. */
export class UdpStage {
  readonly #cleanups: (() => unknown)[] = [];

  async clear(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  use(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  async start(options: UdpStandOptions = {}): Promise<UdpStand> {
    const {
      onFlow = echoing,
      rules = {},
      perTunnel = 100,
      perAddress = 100,
      decide = () => 'allow' as const,
    } = options;
    const { flowsMax = 1000, accountShare = 1, deniedMax = 1000 } = options;
    const { host = HOST, range = { from: 1, to: 1 } } = options;
    const heads: StreamHead[] = [];
    const take: OnFlow = (stream, head) => {
      heads.push(head);
      onFlow(stream, head);
    };
    const connect = async (): Promise<SessionPair> => {
      const made = await sessionPair({ kind: 'plain', capabilities: CAPABILITIES, client: { onDatagramStream: take } });
      this.use(() => made.close());
      return made;
    };
    const pair = await connect();
    const clock = new FakeClock();
    const gate = openGate();
    const totals = new UdpTotals();
    const upstream = new MuxUpstream(pair.edge);
    const tunnel = tunnelOn(upstream);
    const routes = new Map<number, Tunnel>();
    const reported = [] as string[];
    const ended = { count: 0 };
    const counts = new InFlight({ perKey: perTunnel });
    const listeners = new UdpListeners({
      host,
      range,
      clock,
      gate,
      totals,
      decide,
      deniedMax,
      logger: options.logger ?? createLogger({ level: 'silent', format: 'json' }),
      pathPorts: () => [],
      routeOn: (port) => routes.get(port),
      balancer: new Balancer({ counts, random: () => 0 }),
      rules: { ...RULES, flowsPerTunnel: perTunnel, ...rules },
      addresses: new FlowAddresses({ perAddress }),
      accounts: new FlowAccounts({ limit: flowsMax, accountShare }),
      now: () => clock.monotonic(),
      report: (_error, where) => void reported.push(where),
      onStreamEnd: () => void (ended.count += 1),
    });
    this.use(async () => {
      await listeners.closeAll();
      listeners.resetConnections();
    });
    const stand: UdpStand = {
      listeners,
      clock,
      gate,
      counts,
      totals,
      tunnel,
      upstream,
      heads,
      reported,
      routes,
      ended,
      pair,
      lose: () => {
        upstream.mux = null;
        stand.pair.close();
      },
      comeBack: async () => {
        stand.pair = await connect();
        upstream.mux = stand.pair.edge;
      },
      open: async (account = 'alice') => {
        const port = await freePort(host === '::' ? '::1' : host);
        expect(await listeners.listen(port, account)).toBe('listening');
        routes.set(port, tunnel);
        return port;
      },
      visitor: async (port, from = HOST) => {
        const visitor = await Visitor.of(port, from);
        this.use(() => visitor.socket.close());
        return visitor;
      },
      dropped: () => Object.fromEntries(Object.entries(listeners.dropped).filter(([, count]) => count > 0)),
    };
    return stand;
  }
}
