// Control plane of the edge: connections, sessions, their tunnels, the tick every second, revocation, drain and shutdown.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { Fault } from '@tunnel/errors';
import type { AcceptedConnection, ConnectionGate } from '@tunnel/http-shell';
import type { DatagramWay, MuxSession, ReportInternalError } from '@tunnel/mux';
import { CLOSE_CODES, type ControlMessage, type ControlMessageInput, type StreamReason } from '@tunnel/protocol';
import { type ConnectionState, type ControlRole, type HeldConnection } from '@tunnel/rules/admission';
import { type CallerAddress, createCallerAddress, hostPort, networkOf } from '@tunnel/rules/net';
import type { TokenBuckets } from '@tunnel/rules/rate';
import { type Owner, ownerKey, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { type Clock, type Logger, LogLimiter, type Timer } from '@tunnel/runtime';
import type { WebSocket } from 'ws';
import type { Backend, Revocation } from '../backend/backend.ts';
import type { DomainKeepers } from '../backend/names/verified-domains.ts';
import type { PublicAddress } from '../ingress/kinds.ts';
import type { GoneReason, PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { PeerRelays } from '../ingress/p2p/peer-relays.ts';
import type { UdpListeners } from '../ingress/udp/udp-listeners.ts';
import { EDGE_LIMITS } from '../limits.ts';
import type { EndpointRecovery } from '../routing/endpoint-recovery.ts';
import type { EndpointRegistry } from '../routing/endpoints.ts';
import type { Groups } from '../routing/groups.ts';
import type { Registry } from '../routing/registry.ts';
import type { PolicyKeeper } from '../routing/route-policy.ts';
import { type AuthFailures, authenticate } from './authentication.ts';
import { SessionMuxes, upgradeCarrier } from './carriers.ts';
import { ControlConnection, type ControlPeer } from './control-connection.ts';
import { accountBucketsOf, ControlRateLimiter, type ControlRateLimits } from './control-rate-limiter.rules.ts';
import { ControlServer } from './control-server.ts';
import { DatagramPaths } from './datagram-paths.ts';
import type { DatagramPorts } from './datagram-ports.ts';
import { tunnelsOfOthers } from './domain-tunnels.ts';
import { CONTROL_RATE_LIMITS, REGISTRATION_RATE_LIMITS } from './frame-weights.ts';
import { handleMessage } from './messages.ts';
import type { Session } from './session.ts';
import { type SessionLimits, Sessions } from './sessions.ts';
import { SpeedTests } from './speed-tests.ts';

export interface ControlPlaneOptions extends PublicAddress {
  readonly host: string;
  readonly port: number;
  readonly region: { readonly id: string; readonly name: string };
  /** Ports of the edge's admin API, for clients on the same machine. */
  readonly localPorts: () => readonly number[];
  readonly tunnelsPerSession: number;
  readonly trustedProxies: readonly string[];
  readonly gate: ConnectionGate;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly report: ReportInternalError;
  readonly backend: Backend;
  readonly failures: AuthFailures;
  readonly endpoints: EndpointRegistry;
  readonly groups: Groups;
  readonly peers: PeerJoins;
  readonly relays: PeerRelays;
  readonly udp: Pick<UdpListeners, 'reported'>;
  readonly tunnels: Registry;
  readonly policies: PolicyKeeper;
  /** Names of sign-in providers ([[policy.login]]) that tunnel policies can use. */
  readonly loginProviders: readonly string[];
  /** Keeps public endpoints across restarts. Undefined if endpoints are not kept. */
  readonly recovery?: EndpointRecovery | undefined;
  /** Whether load balancing is on: `enabled` of [load_balancing]. */
  readonly loadBalancing: boolean;
  /** Tunnel protocols that the operator has turned off. */
  readonly switchedOff: readonly TunnelProtocol[];
  readonly platformLabel?: string | null;
  readonly datagramPorts: DatagramPorts;
  readonly capabilities?: readonly string[];
  readonly checkAlertUrl: (url: string, withinMs: number) => Promise<string | null>;
  /** Rate limits for messages on control connections. Default: CONTROL_RATE_LIMITS. */
  readonly controlRateLimits?: ControlRateLimits | undefined;
  readonly sessionLimits?: SessionLimits | undefined;
}

export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #server: ControlServer;
  readonly #callerAddress: CallerAddress;
  readonly #paths: DatagramPaths;
  readonly #muxes: SessionMuxes;
  readonly #sessions: Sessions;
  readonly #connections = new Set<ControlConnection>();
  readonly #controlRateLimits: ControlRateLimits;
  readonly #accountBuckets: TokenBuckets;
  readonly #registrationPace: ControlRateLimits;
  readonly #registrationBuckets: TokenBuckets;
  readonly #log: LogLimiter;
  #heldBack = 0;
  #lastConnectionId = 0;
  #isDraining = false;
  #ticking: Timer | undefined;
  #stopListening: () => void = () => {};

  constructor(options: ControlPlaneOptions) {
    const { clock, logger, report, backend, endpoints, groups, peers, relays, tunnels, recovery } = options;
    const { host, port, gate } = options;
    this.#options = options;
    this.#callerAddress = createCallerAddress(options.trustedProxies);
    this.#controlRateLimits = options.controlRateLimits ?? CONTROL_RATE_LIMITS;
    this.#accountBuckets = accountBucketsOf(this.#controlRateLimits);
    this.#registrationPace = options.controlRateLimits ?? REGISTRATION_RATE_LIMITS;
    this.#registrationBuckets = accountBucketsOf(this.#registrationPace);
    this.#log = new LogLimiter(logger, () => clock.monotonic());
    const onViolation = (session: Session, mux: MuxSession, reason: string) => this.#onViolation(session, mux, reason);
    const onRenewed = (mux: MuxSession) => this.#onRenewedPath(mux);
    this.#paths = new DatagramPaths({ ports: options.datagramPorts, clock, report, onRenewed });
    this.#muxes = new SessionMuxes({ clock, log: this.#log, report, paths: this.#paths, relays, onViolation });
    this.#sessions = new Sessions({
      clock,
      log: this.#log,
      backend,
      endpoints,
      groups,
      peers,
      tunnels,
      recovery,
      policies: options.policies,
      muxes: this.#muxes,
      sessionLimits: options.sessionLimits,
    });
    const speedTests = new SpeedTests(options);
    this.#server = new ControlServer({
      listenOn: { host, port, key: '[server] control_port' },
      gate,
      refusal: (request, accepted) => this.#refusal(request, accepted),
      onControl: (ws, request, accepted) => this.#onControl(ws, request, accepted),
      onCarrier: (request, socket, head, accepted) => {
        const admit = (owner: Owner): Fault | null => {
          const refusal = gate.identify(accepted, ownerKey(owner), 'carrier');
          if (refusal === null) accepted.served = new HeldCarrier(accepted);
          return refusal;
        };
        upgradeCarrier(this.#muxes, admit, request, socket, head);
      },
      onSpeed: (request, response, accepted) =>
        speedTests.serve(request, response, accepted, peerOf(request, this.#callerAddress).address),
      report,
    });
  }

  get address(): { host: string; port: number } {
    return this.#server.address;
  }

  renewCertificate(tls: SecureContextOptions | null): void {
    this.#server.renew(tls);
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get figures(): {
    readonly sessions: number;
    readonly carriers: number;
    readonly streams: number;
    /** Number of times the rate limit paused reading from a connection, since the start. */
    readonly heldBack: number;
  } {
    const sessions = this.#sessions;
    const muxes = this.#muxes;
    return {
      sessions: sessions.liveCount,
      carriers: muxes.carriers,
      streams: muxes.streams,
      heldBack: this.#heldBack,
    };
  }

  /** Returns the path of datagrams between the edge and a tunnel's client. */
  datagramPathOf({ sessionId }: { readonly sessionId: string }): DatagramWay {
    return this.#paths.wayOf(this.#sessions.get(sessionId)?.upstream.mux ?? null);
  }

  /** Connected clients with udp tunnels, by datagram path, and rejected packets at the two UDP ports, by reason. */
  get datagramPaths(): {
    readonly clients: Readonly<Record<DatagramWay['path'], number>>;
    readonly refused: Readonly<Record<string, number>>;
    /** Number of datagrams received for a flow that is closed. */
    readonly unopened: number;
  } {
    const clients = { udp: 0, carrier: 0 };
    for (const { upstream, tunnels } of this.#sessions.values()) {
      const hasDatagrams = [...tunnels.values()].some(({ protocol }) => protocol === 'udp');
      if (upstream.mux !== null && hasDatagrams) clients[this.#paths.wayOf(upstream.mux).path] += 1;
    }
    return { clients, refused: this.#paths.refused, unopened: this.#paths.unopened };
  }

  /** Takes over a client connection accepted by a visitor port. */
  takeOver(socket: Socket, accepted: AcceptedConnection, first: Buffer | null): void {
    this.#server.takeOver(socket, accepted, first);
  }

  async start(tls: SecureContextOptions | null): Promise<void> {
    await this.#server.start(tls);
    const { backend } = this.#options;
    const stops = [
      backend.onRevoked((revocation) => this.revoke(revocation)),
      backend.onDomainsChanged((keepers) => this.#domainsChanged(keepers)),
    ];
    this.#stopListening = () => stops.forEach((stop) => stop());
    this.#ticking = this.#options.clock.setInterval(() => this.#tick(), EDGE_LIMITS.SESSION_TICK_MS);
  }

  /** Sends a message to the client of a session, if connected. */
  tell(sessionId: string, message: ControlMessageInput): void {
    this.#sessions.get(sessionId)?.connection?.send(message);
  }

  /** Sends an optional message to the client of a session, if the client supports the capability. */
  offer(sessionId: string, message: ControlMessageInput, capability: string): 'sent' | 'full' | 'unwanted' {
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.connection === null) return 'unwanted';
    if (!session.capabilities.includes(capability)) return 'unwanted';
    return session.connection.offer(message) ? 'sent' : 'full';
  }

  /**
   * Closes a tunnel. The client is notified and does not register the tunnel again; open connections finish. Returns false if the tunnel
   * was closed already.
   */
  closeTunnel(tunnelId: string, fault: Fault): boolean {
    const tunnel = this.#options.tunnels.get(tunnelId);
    const session = tunnel === undefined ? undefined : this.#sessions.get(tunnel.sessionId);
    if (session === undefined || !this.#sessions.endTunnel(session, tunnelId)) return false;
    const { code, message, retryable } = fault;
    session.connection?.send({ type: 'TunnelError', tunnel_id: tunnelId, code, message, retryable });
    return true;
  }

  /**
   * Ends all sessions of a revoked key or account, including disconnected sessions, and all their streams. With `tunnelIds` only, just
   * those tunnels are closed.
   */
  revoke({ keyId, accountId, tunnelIds = [], fault }: Revocation): void {
    // Tunnels of a disconnected client are reported again when the client reconnects.
    for (const tunnelId of tunnelIds) this.closeTunnel(tunnelId, fault);
    if (keyId === undefined && accountId === undefined) return;
    const isMeant = (session: Session): boolean =>
      (keyId !== undefined && session.keyId === keyId) ||
      (accountId !== undefined && session.owner.kind === 'account' && session.owner.accountId === accountId);
    for (const session of [...this.#sessions.values()]) if (isMeant(session)) this.#endWith(session, fault, 'revoked');
    this.#muxes.closeWhere(isMeant, { code: 'cancelled', text: fault.message });
  }

  /**
   * Closes tunnels on domains now verified by another account, including tunnels of disconnected clients, which would otherwise reconnect.
   * Open connections are reset, because a visitor's WebSocket could stay for days on a domain of another account.
   */
  #domainsChanged(keepers: DomainKeepers): void {
    for (const { session, tunnelId, fault } of tunnelsOfOthers(this.#sessions.values(), keepers)) {
      if (!this.closeTunnel(tunnelId, fault)) this.#sessions.endTunnel(session, tunnelId);
      this.#muxes.resetTunnel(session, tunnelId, { code: 'cancelled', text: fault.message });
    }
  }

  /** Rejects new clients, tunnels and streams, and notifies clients. Open streams continue until end(). */
  drain(drainSecs: number): void {
    // Repeated on each call: after a shutdown during startup, the port may have opened since the last call.
    this.#server.stopAccepting();
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#options.recovery?.freeze();
    this.#options.groups.shutDown();
    const { message } = new Fault('EDGE_SHUTTING_DOWN');
    for (const connection of this.#connections) {
      connection.send({ type: 'ShuttingDown', reason: message, drain_secs: drainSecs });
    }
  }

  /** Ends all remaining client sessions. Resolves when the last client socket is closed. */
  async end(): Promise<void> {
    const connections = this.#endAll();
    for (const connection of connections) connection.close(CLOSE_CODES.goingAway, 'EDGE_SHUTTING_DOWN');
    await Promise.all(connections.map(({ whenGone }) => whenGone));
  }

  /** Ends all client sessions without notifying clients and without waiting. */
  cut(): void {
    for (const connection of this.#endAll()) connection.terminate();
  }

  #endAll(): ControlConnection[] {
    this.drain(0);
    this.#ticking?.cancel();
    this.#stopListening();
    this.#options.peers.shutDown();
    for (const session of [...this.#sessions.values()]) this.#sessions.end(session, SHUTTING_DOWN.text, 'lost');
    this.#muxes.closeWhere(() => true, SHUTTING_DOWN);
    return [...this.#connections];
  }

  #tick(): void {
    this.#sessions.tick();
    this.#muxes.tick();
  }

  #refusal(request: IncomingMessage, accepted: AcceptedConnection): Fault | null {
    if (this.#isDraining) return new Fault('EDGE_SHUTTING_DOWN');
    return this.#options.gate.speaksFor(accepted, peerOf(request, this.#callerAddress).address);
  }

  #onControl(ws: WebSocket, request: IncomingMessage, accepted: AcceptedConnection): void {
    const { clock, gate, report } = this.#options;
    this.#lastConnectionId += 1;
    const pace = new ControlRateLimiter(this.#controlRateLimits, this.#accountBuckets);
    const registrationPace = new ControlRateLimiter(this.#registrationPace, this.#registrationBuckets);
    const peer = peerOf(request, this.#callerAddress);
    // Before authentication, control messages are charged to the client's network; otherwise each new connection would start with a full
    // token bucket.
    pace.chargeTo(`network ${networkOf(peer.address)}`);
    const connection = new ControlConnection({
      id: this.#lastConnectionId,
      pace,
      registrationPace,
      ws,
      peer,
      clock,
      log: this.#log,
      report,
      handlers: {
        onAuth: async (from, message) => {
          const context = {
            ...this.#options,
            sessions: this.#sessions,
            muxes: this.#muxes,
            paths: this.#paths,
            isDraining: () => this.#isDraining,
            admit: (owner: Owner, as: ControlRole) => gate.identify(accepted, ownerKey(owner), as),
          };
          const isIn = await authenticate(context, from, message);
          const owner = this.#sessions.of(from)?.owner;
          // The operator can run any number of clients and is not a tenant, so only the limits per connection apply.
          const account = owner?.kind === 'account' ? ownerKey(owner) : null;
          if (isIn) for (const paced of [pace, registrationPace]) paced.chargeTo(account);
          return isIn;
        },
        onMessage: (from, message) => this.#onMessage(from, message),
        onHeldBack: (from) => this.#onHeldBack(from),
        onLost: (from) => {
          this.#connections.delete(from);
          this.#sessions.lost(from);
        },
      },
    });
    accepted.served = new HeldControl(connection);
    this.#connections.add(connection);
  }

  #onHeldBack(connection: ControlConnection): void {
    this.#heldBack += 1;
    const session = this.#sessions.of(connection);
    // Unauthenticated clients share a log key, because attackers can choose their addresses.
    const who = session === undefined ? 'stranger' : ownerKey(session.owner);
    const fields = { client: connection.peer.clientAddr, session_id: session?.sessionId };
    this.#log.log('warn', `held-back ${who}`, fields, 'client sends too many frames; reading paused');
  }

  #onMessage(connection: ControlConnection, message: ControlMessage): Promise<void> | void {
    const context = {
      ...this.#options,
      tunnelLimit: this.#options.tunnelsPerSession,
      sessions: this.#sessions,
      muxes: this.#muxes,
      isDraining: () => this.#isDraining,
    };
    return handleMessage(context, this.#sessions.of(connection), connection, message);
  }

  #onViolation(session: Session, mux: MuxSession, reason: string): void {
    // A violation on a mux of an earlier connection is ignored: the client has abandoned those streams already.
    if (session.upstream.mux === mux) this.#endWith(session, new Fault('CARRIER_PROTOCOL', { reason }), 'lost');
  }

  #onRenewedPath(mux: MuxSession): void {
    const message = this.#paths.messageFor(mux);
    if (message !== null) this.#muxes.sessionOf(mux)?.connection?.send(message);
  }

  #endWith(session: Session, fault: Fault, peersAre: GoneReason): void {
    const { connection } = session;
    // Joins end with the session's fault. With "not found", users would check a name and a secret that are correct.
    this.#sessions.end(session, fault.message, peersAre, peersAre === 'revoked' ? fault : null);
    connection?.fail(fault);
  }
}

const SHUTTING_DOWN: StreamReason = { code: 'shutting-down', text: 'the edge is shutting down' };

/** View of an upgraded control connection for the connection gate. */
class HeldControl implements HeldConnection {
  readonly isIdle = false;
  readonly #connection: ControlConnection;

  constructor(connection: ControlConnection) {
    this.#connection = connection;
  }

  get activeAtMs(): number {
    return this.#connection.lastHeardAt;
  }

  describe(): ConnectionState {
    return this.#connection.describe();
  }

  close(): void {
    this.#connection.terminate();
  }
}

/** View of a carrier for the connection gate. */
class HeldCarrier implements HeldConnection {
  readonly isIdle = false;
  readonly #accepted: AcceptedConnection;

  constructor(accepted: AcceptedConnection) {
    this.#accepted = accepted;
  }

  get activeAtMs(): number {
    return this.#accepted.ticket.enteredMs;
  }

  describe(): ConnectionState {
    return { phase: 'open', waitsFor: 'frames' };
  }

  close(): void {
    this.#accepted.socket.destroy();
  }
}

const peerOf = (request: IncomingMessage, callerAddress: CallerAddress): ControlPeer => {
  const { remoteAddress = '', remotePort = 0 } = request.socket;
  const forwardedFor = request.headers['x-forwarded-for'];
  const given = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
  return {
    address: callerAddress(remoteAddress, given),
    clientAddr: hostPort(remoteAddress, remotePort),
  };
};
