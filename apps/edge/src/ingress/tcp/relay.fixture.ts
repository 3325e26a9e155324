// A relay behind a real port, with real client sessions behind it: a single tunnel or the members of a group. Used by tests only.

import * as net from 'node:net';
import type { ConnectionGate } from '@tunnel/http-shell';
import { type AcceptedSocket, acceptingServer, connectSocket, HandleDuplex, type MuxStream, splice } from '@tunnel/mux';
import { CAPABILITIES, type StreamHead } from '@tunnel/protocol';
import { InFlight } from '@tunnel/rules/rate';
import { MemberHealth, type Owner } from '@tunnel/rules/tunnels';
import { createLogger, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, rethrow, type SessionPair, sessionPair } from '@tunnel/testkit';
import { expect } from 'vitest';
import { TunnelCounters } from '../../backend/tunnel-counters.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import { Balancer } from '../../routing/balancer.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import { NO_POLICY } from '../../routing/route-policy.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { TunnelGroup } from '../../routing/tunnel-group.rules.ts';
import { MuxUpstream } from '../../upstream/upstream.ts';
import { openGate } from '../gate.fixture.ts';
import { HttpErrorFallback } from '../http/http-error-fallback.ts';
import { Relay } from './relay.ts';

export interface PathLimits {
  readonly perTunnel: number;
  readonly perAddress: number;
}

export type OnStream = (stream: MuxStream) => void;

export interface Member {
  readonly tunnel: Tunnel;
  pair: SessionPair;
  /** Heads of the streams offered to the client. */
  readonly heads: StreamHead[];
  readonly upstream: MuxUpstream;
  /** Ends the session, after which the client comes back with a new session. */
  reconnect(): Promise<void>;
}

export interface MemberOptions {
  readonly tunnelId?: string;
  readonly group?: TunnelGroup<Tunnel>;
  readonly owner?: Owner;
  readonly healthy?: boolean;
  readonly proxyProtocol?: Tunnel['proxyProtocol'];
}

export interface RelayStand {
  readonly relay: Relay;
  readonly gate: ConnectionGate;
  readonly counts: InFlight;
  readonly clock: FakeClock;
  readonly port: number;
  /** Ports of all visitors so far. The system can assign the same port again. */
  readonly visitorPorts: number[];
  /** Returns the number of bytes read from all visitors so far. */
  bytesRead(): number;
  visit(): net.Socket;
}

const logger = createLogger({ level: 'silent', format: 'json' });

/** Creates a client that dials a local port for every stream. */
export const dialling =
  (port: number): OnStream =>
  (stream) => {
    connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock }).then(
      (local) => {
        stream.accept();
        splice(stream, local, { onDone: () => {}, abandon: rethrow });
      },
      (error: NodeJS.ErrnoException) => stream.refuse({ code: 'dial-refused', text: error.code ?? '' }),
    );
  };

/** A client that answers a stream within the call, without a local service. */
export const echoing: OnStream = (stream) => {
  stream.accept();
  stream.read({
    onData: (bytes, start, end) => {
      stream.write(Buffer.from(bytes.subarray(start, end)), 0, end - start, false);
      return true;
    },
    onDrain: () => {},
    onEnd: () => stream.end(),
    onReset: () => {},
    abandon: rethrow,
  });
};

export const refusing: OnStream = (stream) => stream.refuse({ code: 'dial-refused', text: 'ECONNREFUSED' });

export const newGroup = (): TunnelGroup<Tunnel> =>
  new TunnelGroup<Tunnel>({
    groupId: 'grp_1',
    protocol: 'tcp',
    name: 'db',
    keyHash: 'ab'.repeat(32),
    endpoint: { kind: 'port', transport: 'tcp', port: 20_000 },
    label: '20000',
    policy: NO_POLICY,
  });

/** Returns how a socket ended, as seen by its owner: 'end' or an error code. */
export const endOf = (socket: net.Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    socket.once('end', () => resolve('end'));
    socket.resume();
  });

/** Holds the parts of a test. clear() ends them. */
export class RelayStage {
  readonly #cleanups: (() => unknown)[] = [];

  kept<T extends { close(): unknown }>(thing: T): T {
    this.#cleanups.push(() => thing.close());
    return thing;
  }

  async clear(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  /** Starts a client with a tunnel, which stands alone if no group is given. */
  async startMember(onStream: OnStream, options: MemberOptions = {}): Promise<Member> {
    const {
      tunnelId = 'tun_1',
      group = null,
      owner = { kind: 'operator' },
      healthy = true,
      proxyProtocol = null,
    } = options;
    const heads: StreamHead[] = [];
    const take = (stream: MuxStream, head: StreamHead): void => {
      heads.push(head);
      onStream(stream);
    };
    const connect = async (): Promise<SessionPair> =>
      this.kept(await sessionPair({ kind: 'plain', capabilities: CAPABILITIES, client: { onStream: take } }));
    const pair = await connect();
    const upstream = new MuxUpstream(pair.edge);
    const tunnel: Tunnel = {
      tunnelId,
      sessionId: 'ses_1',
      name: 'db',
      protocol: 'tcp',
      label: '20000',
      publicUrl: 'tcp://localhost:20000',
      endpoint:
        group === null ? { kind: 'port', transport: 'tcp', port: 20_000 } : { kind: 'member', groupId: group.groupId },
      group,
      assignedPort: 20_000,
      http: null,
      flowIdleSecs: null,
      clientAddr: '127.0.0.1:1',
      owner,
      connectedSince: 0,
      counters: new TunnelCounters(),
      health: new MemberHealth(healthy ? null : 'tcp'),
      alertWebhook: null,
      policy: NO_POLICY,
      proxyProtocol,
      upstream,
    };
    group?.transition({ kind: 'member-joined', member: tunnel }, 0);
    const reconnect = async (): Promise<void> => {
      upstream.mux = null;
      member.pair.close();
      member.pair = await connect();
      upstream.mux = member.pair.edge;
    };
    const member: Member = { tunnel, pair, heads, upstream, reconnect };
    return member;
  }

  /** Starts a relay. The default of `random` picks the members in the order in which they joined. */
  async startRelay(
    route: Route,
    options: {
      readonly limits?: PathLimits;
      readonly random?: () => number;
      readonly policies?: Pick<PolicyGate, 'admits'>;
      /** Whether the first bytes are read before the relay gets the connection, as the https port does. */
      readonly isPassed?: boolean;
    } = {},
  ): Promise<RelayStand> {
    const { limits = { perTunnel: 100, perAddress: 100 }, random = () => 0, policies, isPassed = false } = options;
    const counts = new InFlight({ perKey: limits.perTunnel });
    const clock = new FakeClock();
    const gate = openGate({ perNetwork: limits.perAddress });
    const relay = new Relay({
      balancer: new Balancer({ counts, random }),
      policies,
      answerUnserved: (visitor, fault, onOver) => new HttpErrorFallback(visitor, fault, clock, rethrow, onOver),
      logger,
      clock,
      report: rethrow,
    });
    const visitorPorts: number[] = [];
    const accepted: AcceptedSocket[] = [];
    const take = (socket: AcceptedSocket): void => {
      const connection = gate.accept('tcp', socket);
      if (connection === null) return;
      accepted.push(socket);
      visitorPorts.push(socket.remotePort ?? 0);
      if (isPassed) readFirst(socket, (first) => relay.carry(socket, connection, route, first));
      else relay.carry(socket, connection, route);
    };
    const server = acceptingServer({ keepAliveMs: 60_000, take, report: rethrow, where: 'tcp.connection' });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = this.kept(server).address() as net.AddressInfo;
    const visit = (): net.Socket => {
      const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      this.#cleanups.push(() => socket.destroy());
      socket.on('error', () => {});
      return socket;
    };
    const bytesRead = (): number => accepted.reduce((sum, socket) => sum + socket.bytesRead, 0);
    return { relay, gate, counts, clock, port, visitorPorts, bytesRead, visit };
  }
}

const readFirst = (socket: AcceptedSocket, pass: (first: Buffer) => void): void => {
  if (!(socket instanceof HandleDuplex)) throw new Error('this Node.js has no bare handles');
  socket.read({
    onData: (bytes, start, end) => {
      pass(Buffer.from(bytes.subarray(start, end)));
      return true;
    },
    onDrain: () => {},
    onEnd: () => socket.destroy(),
    onReset: () => {},
    abandon: rethrow,
  });
};

/** Advances the clock to the time limit for the first bytes of a visitor without a service. */
export const passSilence = async ({ clock }: RelayStand): Promise<void> => {
  await eventually(() => expect(clock.pendingTimers).toBeGreaterThan(0));
  await clock.advance(300);
};

/** Waits until no connection remains, in any count or timer. */
export const expectOver = ({ relay, gate, counts, clock }: RelayStand, members: readonly Member[]): Promise<void> =>
  eventually(() => {
    expect([relay.connections, counts.total, gate.admission.used.visitors, clock.pendingTimers]).toEqual([0, 0, 0, 0]);
    for (const { tunnel, pair } of members) {
      const { group, tunnelId } = tunnel;
      expect([tunnel.counters.openConnections, pair.edge.liveStreams, counts.of(tunnelId)]).toEqual([0, 0, 0]);
      if (group !== null && isGroup(group)) expect(counts.of(group.groupId)).toBe(0);
    }
  });
