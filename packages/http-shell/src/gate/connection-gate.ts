// Gate for accepted sockets: takes a ticket for every socket, returns the ticket when the socket closes, closes connections that must
// make room, and logs refusals. The rules are in the admission of the rules package; listeners only learn whether to continue.
import type { Socket } from 'node:net';
import { Fault } from '@tunnel/errors';
import {
  type Admission,
  type AdmissionRefusal,
  type ConnectionKind,
  type ConnectionShare,
  type ConnectionState,
  type ControlRole,
  type HeldConnection,
  shareOf,
  type Ticket,
} from '@tunnel/rules/admission';
import { hostPort, networkOf, plainAddress, TrustedProxies } from '@tunnel/rules/net';
import { type Clock, type Logger, LogLimiter, type Timer } from '@tunnel/runtime';

/** How long a rejected connection stays open, so that the peer can send a request and read the reason for the rejection. */
const REFUSAL_MS = 3000;
/** Retry-After for connections rejected because of a limit: a moment later there may be room. */
export const RETRY_AFTER_SECS = 1;
/**
 * Share of a connection limit at which a warning is logged. The warning is repeated only after the share has fallen below
 * WARN_AGAIN_BELOW.
 */
const WARN_ABOVE = 0.8;
const WARN_AGAIN_BELOW = 0.6;

/**
 * Kinds of connections that are looked up later: with TLS, a request or upgrade arrives on a different socket object than the connection.
 */
const IS_FOUND_AGAIN: ReadonlySet<ConnectionKind> = new Set(['https', 'control', 'rest', 'metrics', 'platform']);
const WHO: Readonly<Record<ConnectionShare, string>> = { visitors: 'visitor', control: 'client', api: 'caller' };

/** Methods of a connection that the gate uses: of a net.Socket, or of a bare handle, which notifies its holder of the end. */
interface GatedSocket extends SocketEnds {
  readonly destroyed: boolean;
  destroy(): unknown;
  resetAndDestroy(): unknown;
  /**
   * Sets the object that is notified when the connection closes or becomes a Node socket. Absent in a net.Socket, which emits events
   * instead.
   */
  heldBy?(holder: { onClosed(): void; onBecame(socket: Socket): void }): void;
}

/** An accepted connection: its socket, and its ticket for the connection limits. */
export class AcceptedConnection implements HeldConnection {
  #socket: GatedSocket;
  /**
   * Addresses and ports of both ends, the key for looking up the connection. Stored, because a closed socket no longer has them. Null if
   * the connection is never looked up.
   */
  ends: string | null = null;
  #ticket: Ticket;
  #refusal: Fault | null;
  /** Object that serves the connection. Null until the connection is served, and for connections served by the HTTP server of Node.js. */
  served: HeldConnection | null = null;
  #requests = 0;
  #activeAtMs: number;
  readonly #gate: Pick<ConnectionGate, 'left' | 'became'>;
  /** Timer that closes a rejected connection. */
  deadline: Timer | null = null;
  /** Called after the gate when an unserved connection closes. A single function for all connections. */
  whenClosed: ((accepted: AcceptedConnection) => void) | null = null;

  constructor(
    ticket: Ticket,
    socket: GatedSocket,
    refusal: Fault | null,
    gate: Pick<ConnectionGate, 'left' | 'became'>,
  ) {
    this.#ticket = ticket;
    this.#socket = socket;
    this.#refusal = refusal;
    this.#activeAtMs = ticket.enteredMs;
    this.#gate = gate;
  }

  get socket(): GatedSocket {
    return this.#socket;
  }

  /** Called after a bare handle was converted to a Node socket, because another protocol needs one. */
  onBecame(socket: Socket): void {
    this.#socket = socket;
    this.#gate.became(this);
  }

  /** Returns the ticket of the connection. Called after the file descriptor was closed. */
  onClosed(): void {
    this.deadline?.cancel();
    this.#gate.left(this);
    this.whenClosed?.(this);
  }

  get ticket(): Ticket {
    return this.#ticket;
  }

  /** Reason for the rejection, the only response that the connection may get. Null if the connection was admitted. */
  get refusal(): Fault | null {
    return this.#refusal;
  }

  /** Moves the connection to a different share after its old ticket was returned. The connection is not served there yet. */
  moved(ticket: Ticket, refusal: Fault | null): void {
    this.#ticket = ticket;
    this.#refusal = refusal;
    this.served = null;
    ticket.held = this;
  }

  /** Address of the peer as `host:port`, for logs. */
  get peer(): string {
    return hostPort(this.#socket.remoteAddress ?? '', this.#socket.remotePort ?? 0);
  }

  /** Counts a request. Used for connections served by the HTTP server of Node.js. */
  requestBegins(nowMs: number): void {
    this.#requests += 1;
    this.#activeAtMs = nowMs;
  }

  requestOver(nowMs: number): void {
    this.#requests -= 1;
    this.#activeAtMs = nowMs;
  }

  get isIdle(): boolean {
    return this.served?.isIdle ?? this.#requests === 0;
  }

  get activeAtMs(): number {
    return this.served?.activeAtMs ?? this.#activeAtMs;
  }

  describe(): ConnectionState {
    if (this.served !== null) return this.served.describe();
    return this.#requests > 0 ? { phase: 'answering', waitsFor: 'us' } : { phase: 'accepted', waitsFor: 'a request' };
  }

  close(): void {
    if (this.served !== null) this.served.close();
    else this.#socket.destroy();
  }
}

export interface ConnectionGateOptions {
  readonly admission: Admission;
  readonly trustedProxies: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns the current delay of the event loop in milliseconds. Measured by default; tests can replace it. */
  readonly lateMs?: () => number;
}

/** Completed TLS handshakes. A resumed one continues an earlier session of the peer, without certificate and signature. */
interface HandshakeTotals {
  full: number;
  resumed: number;
}

export class ConnectionGate {
  readonly admission: Admission;
  readonly handshakes: Readonly<Record<'visitors' | 'control', HandshakeTotals>> = {
    visitors: { full: 0, resumed: 0 },
    control: { full: 0, resumed: 0 },
  };
  readonly #proxies: TrustedProxies;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #log: LogLimiter;
  /** Connections by the addresses and ports of both ends, because a peer can connect from one port to several local ports. */
  readonly #byEnds = new Map<string, AcceptedConnection>();
  readonly #lateMs: () => number;
  readonly #isNearlyFull = { visitors: false, control: false, api: false };

  constructor({ admission, trustedProxies, clock, logger, lateMs = latenessOf(clock) }: ConnectionGateOptions) {
    this.admission = admission;
    this.#proxies = new TrustedProxies(trustedProxies);
    this.#clock = clock;
    this.#lateMs = lateMs;
    this.#logger = logger;
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  /** Takes a ticket for a socket. Returns null if the connection was closed, either by the peer or because of a limit. */
  accept(kind: ConnectionKind, socket: GatedSocket): AcceptedConnection | null {
    const { remoteAddress } = socket;
    // The peer disconnected after the kernel had accepted its connection.
    if (remoteAddress === undefined) {
      socket.destroy();
      return null;
    }
    const entered = this.#enter(kind, plainAddress(remoteAddress));
    if (entered !== null) return this.#adopt(entered.ticket, socket, entered.refusal);
    socket.resetAndDestroy();
    return null;
  }

  /**
   * Moves a connection on a visitors' port that has turned out to be a client's from the visitors' share to the clients' share. From now
   * on only the rules for clients apply: neither kind can use up the share of the other, and a full visitors' share rejects no client.
   * Returns false if the connection was closed.
   */
  becomesControl(accepted: AcceptedConnection): boolean {
    const { socket, ticket } = accepted;
    const { remoteAddress } = socket;
    if (!ticket.isIn || remoteAddress === undefined) {
      socket.destroy();
      return false;
    }
    this.admission.leave(ticket);
    const entered = this.#enter('control', plainAddress(remoteAddress));
    if (entered === null) {
      socket.destroy();
      return false;
    }
    accepted.moved(entered.ticket, entered.refusal);
    this.#remember(accepted);
    if (entered.refusal !== null) this.#closeLate(accepted);
    return true;
  }

  /** Asks for a ticket. Returns null if the connection is rejected and there is not even room to send the reason. */
  #enter(kind: ConnectionKind, address: string): { ticket: Ticket; refusal: Fault | null } | null {
    // On tcp ports, a proxy's connections count for the proxy's network, because the bytes do not reveal the visitor.
    const isProxy = kind !== 'tcp' && this.#proxies.trusts(address);
    const entry = this.admission.enter(kind, isProxy ? null : networkOf(address), this.#clock.monotonic());
    if (entry.kind === 'admitted') {
      if (entry.shed !== null) this.#shed(entry.shed);
      this.#warnWhenNearlyFull(shareOf(kind));
      return { ticket: entry.ticket, refusal: null };
    }
    const refusal = faultOf(entry);
    this.#logRefusal(entry.reason, shareOf(kind), { kind, visitor: address }, refusal);
    return entry.ticket === null ? null : { ticket: entry.ticket, refusal };
  }

  /**
   * Counts a TLS handshake before it costs any time. Returns false if the peer's network starts too many handshakes; the connection was
   * reset then.
   */
  handshakeBegins({ ticket, socket }: AcceptedConnection): boolean {
    if (this.admission.handshakeBegins(ticket, this.#lateMs(), this.#clock.monotonic())) return true;
    const fields = { reason: 'handshake-rate', kind: ticket.kind, visitor: ticket.network };
    this.#log.log('warn', 'handshake-rate', fields, 'TLS handshake reset; too many handshakes from the same network');
    socket.resetAndDestroy();
    return false;
  }

  /** Counts a completed TLS handshake. */
  handshakeEnds(share: 'visitors' | 'control', isResumed: boolean): void {
    this.handshakes[share][isResumed ? 'resumed' : 'full'] += 1;
  }

  /** Finds the accepted connection on which a request or upgrade arrived. */
  find(socket: SocketEnds): AcceptedConnection | undefined {
    return this.#byEnds.get(endsOf(socket));
  }

  /**
   * Assigns a control connection behind a trusted proxy to the client address that the proxy reports. Returns the reason for a rejection,
   * or null.
   */
  speaksFor({ ticket }: AcceptedConnection, address: string): Fault | null {
    const refusal = this.admission.speaksFor(ticket, networkOf(address));
    if (refusal === null) return null;
    const fault = faultOf(refusal);
    this.#logRefusal(refusal.reason, 'control', { kind: 'control', visitor: address }, fault);
    return fault;
  }

  /** Assigns a connection to an account, for which it counts from now on. Returns the reason for a rejection, or null. */
  identify({ ticket, peer }: AcceptedConnection, account: string, as: ControlRole): Fault | null {
    const refusal = this.admission.identify(ticket, account, as);
    if (refusal === null) return null;
    const limit = this.admission.perAccount;
    const reason =
      refusal === 'holder-full'
        ? `connection limit of ${limit} reached for this account`
        : 'the edge is nearly full, and this account already has a fair share of the connections';
    const fault = new Fault('SESSION_LIMIT', { reason });
    const fields = { code: fault.code, reason: 'account-limit', kind: as, account, client: peer, limit };
    this.#log.log('warn', `account-limit ${account}`, fields, `client rejected: ${fault.message}`);
    return fault;
  }

  /**
   * Counts a listening port for a tunnel of the account. Throws a Fault if a limit is reached; otherwise the caller must call closePort()
   * once.
   */
  openPort(account: string): void {
    const entry = this.admission.openPort(account);
    if (entry.kind === 'admitted') {
      if (entry.shed !== null) this.#shed(entry.shed);
      return;
    }
    const limit = this.admission.portsPerAccount;
    const reason =
      entry.reason === 'holder-full'
        ? `port limit of ${limit} reached for this account`
        : 'the edge is running out of file descriptors for ports';
    const fault = new Fault('TUNNEL_PORT_LIMIT', { reason });
    const fields = { code: fault.code, reason: 'port-limit', account, limit };
    this.#log.log('warn', `port-limit ${account}`, fields, `tunnel rejected: ${fault.message}`);
    throw fault;
  }

  closePort(account: string): void {
    this.admission.closePort(account);
  }

  /** Counts a request on a connection served by the HTTP server of Node.js. The caller must call requestOver() once. */
  requestBegins(connection: AcceptedConnection): void {
    connection.requestBegins(this.#clock.monotonic());
  }

  requestOver(connection: AcceptedConnection): void {
    connection.requestOver(this.#clock.monotonic());
  }

  /**
   * Counts a request of a visitor behind a trusted proxy. Returns null if the request counts, and the caller must call uncountVisitor()
   * once; otherwise returns the reason for the rejection.
   */
  countVisitor(address: string): Fault | null {
    if (this.admission.requestBegins(networkOf(address))) return null;
    const fault = faultOf({ reason: 'address-limit', limit: this.admission.perNetwork });
    this.#logRefusal('address-limit', 'visitors', { kind: 'request', visitor: address }, fault);
    return fault;
  }

  uncountVisitor(address: string): void {
    this.admission.requestOver(networkOf(address));
  }

  /** Logs a failed accept, for example because no file descriptors are left. Only that connection is lost. */
  onAcceptError(error: Error): void {
    this.#log.log('warn', 'accept-error', { err: error }, 'cannot accept a connection');
  }

  #adopt(ticket: Ticket, socket: GatedSocket, refusal: Fault | null): AcceptedConnection {
    const accepted = new AcceptedConnection(ticket, socket, refusal, this);
    ticket.held = accepted;
    // A bare handle is looked up only after its conversion to a Node socket.
    if (IS_FOUND_AGAIN.has(ticket.kind) && socket.heldBy === undefined) this.#remember(accepted);
    if (refusal !== null) this.#closeLate(accepted);
    if (socket.heldBy !== undefined) socket.heldBy(accepted);
    else (socket as Socket).once('close', () => accepted.onClosed());
    return accepted;
  }

  /** Called by the connection when its bare handle was converted to a Node socket. */
  became(accepted: AcceptedConnection): void {
    if (IS_FOUND_AGAIN.has(accepted.ticket.kind)) this.#remember(accepted);
  }

  /** Releases the ticket of a connection. Called once by the connection when its socket has closed. */
  left(accepted: AcceptedConnection): void {
    this.admission.leave(accepted.ticket);
    const { ends } = accepted;
    if (ends !== null && this.#byEnds.get(ends) === accepted) this.#byEnds.delete(ends);
  }

  #remember(accepted: AcceptedConnection): void {
    accepted.ends ??= endsOf(accepted.socket);
    this.#byEnds.set(accepted.ends, accepted);
  }

  /**
   * Closes a rejected connection after a delay, in which the peer can read the reason. A connection that was admitted meanwhile stays
   * open.
   */
  #closeLate(accepted: AcceptedConnection): void {
    accepted.deadline ??= this.#clock.setTimeout(() => {
      if (accepted.refusal !== null) accepted.close();
    }, REFUSAL_MS);
  }

  #shed({ held, kind, network }: Ticket): void {
    const share = shareOf(kind);
    const fields = { reason: 'shed', share, kind, visitor: network, limit: this.admission.limits[share] };
    this.#log.log('warn', `shed ${share}`, fields, 'connection closed to make room for a new connection');
    held?.close();
  }

  #logRefusal(reason: string, share: ConnectionShare, fields: object, fault: Fault): void {
    const values = { ...fault.values, code: fault.code, reason, ...fields };
    this.#log.log('warn', reason, values, `${WHO[share]} rejected: ${fault.message}`);
  }

  #warnWhenNearlyFull(share: ConnectionShare): void {
    const used = this.admission.used[share];
    const limit = this.admission.limits[share];
    if (used < limit * WARN_AGAIN_BELOW) this.#isNearlyFull[share] = false;
    if (used < limit * WARN_ABOVE || this.#isNearlyFull[share]) return;
    this.#isNearlyFull[share] = true;
    this.#logger.warn({ share, connections: used, limit }, 'connection share is nearly full');
  }
}

interface SocketEnds {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  /** Local end, available only for a net.Socket. Bare handles are never looked up. */
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: SocketEnds): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

const faultOf = ({ reason, limit }: AdmissionRefusal): Fault => {
  if (reason === 'address-limit') return new Fault('CONNECTIONS_PER_ADDRESS', { limit });
  return new Fault(reason === 'unauthenticated-limit' ? 'CONTROL_WAITING_LIMIT' : 'CONNECTIONS_FULL', { limit });
};

// ---- delay of the event loop, measured with timers ----
// The gate measures it only while handshakes begin: an idle process has no timer for it.

const MEASURE_MS = 10;
/** Maximum age of a measurement of the event loop's delay. An older measurement is ignored. */
const FRESH_MS = 1000;

const latenessOf = (clock: Clock): (() => number) => {
  let dueMs: number | null = null;
  let lateMs = 0;
  let measuredMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monotonic();
    const last = nowMs - measuredMs < FRESH_MS ? lateMs : 0;
    // A timer that is overdue says more about the delay than the last timer that fired.
    if (dueMs !== null) return Math.max(last, nowMs - dueMs);
    const due = nowMs + MEASURE_MS;
    dueMs = due;
    const timer = clock.setTimeout(() => {
      measuredMs = clock.monotonic();
      lateMs = Math.max(0, measuredMs - due);
      dueMs = null;
    }, MEASURE_MS);
    timer.unref?.();
    return last;
  };
};
