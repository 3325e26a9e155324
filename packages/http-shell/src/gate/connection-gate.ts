// The gate that every accepted socket passes: takes a ticket for it, gives it back when the socket closes, closes what has to give way, and says
// in the log what was refused. The rules are in the admission of the rules package; the listeners know only whether they may go on.
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

/** How long a refused connection may take to ask for something and to read why it gets nothing. */
const REFUSAL_MS = 3000;
/** For those who are told to come again: a moment later there may be room. */
export const RETRY_AFTER_SECS = 1;
/** A share is called nearly full from here on, and again only after it has been below the second. */
const WARN_ABOVE = 0.8;
const WARN_AGAIN_BELOW = 0.6;

/** Kinds whose sockets are looked for later: over TLS a request, or an upgrade, comes on another object than the connection did. */
const IS_FOUND_AGAIN: ReadonlySet<ConnectionKind> = new Set(['https', 'control', 'rest', 'metrics', 'platform']);
const WHO: Readonly<Record<ConnectionShare, string>> = { visitors: 'visitor', control: 'client', api: 'caller' };

/** What the gate needs of a connection: a net.Socket has it, and so has one without, which tells its holder of its end itself. */
interface GatedSocket extends SocketEnds {
  readonly destroyed: boolean;
  destroy(): unknown;
  resetAndDestroy(): unknown;
  /** Absent in a net.Socket, which has an event for it. */
  heldBy?(holder: { onClosed(): void; onBecame(socket: Socket): void }): void;
}

/** One accepted socket, and its place. */
export class AcceptedConnection implements HeldConnection {
  #socket: GatedSocket;
  /** By which it is found again; null: nobody will look. A closed socket does not know them any more. */
  ends: string | null = null;
  #ticket: Ticket;
  #refusal: Fault | null;
  /** Who serves it; null: nobody does yet, or node's HTTP server. */
  served: HeldConnection | null = null;
  #requests = 0;
  #activeAtMs: number;
  readonly #gate: Pick<ConnectionGate, 'left' | 'became'>;
  /** Of one that is refused: when it is closed. */
  deadline: Timer | null = null;
  /** Who is told beside the gate, while nobody serves it: one function for all connections. */
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

  /** Another protocol needs an ordinary socket, and has one now. */
  onBecame(socket: Socket): void {
    this.#socket = socket;
    this.#gate.became(this);
  }

  /** Its descriptor is given back. */
  onClosed(): void {
    this.deadline?.cancel();
    this.#gate.left(this);
    this.whenClosed?.(this);
  }

  get ticket(): Ticket {
    return this.#ticket;
  }

  /** It may be told this, and nothing else; null: it is in. */
  get refusal(): Fault | null {
    return this.#refusal;
  }

  /** Another place than the one it came in by, which is given back already. Nobody serves it there yet. */
  moved(ticket: Ticket, refusal: Fault | null): void {
    this.#ticket = ticket;
    this.#refusal = refusal;
    this.served = null;
    ticket.held = this;
  }

  /** host:port, for people. */
  get peer(): string {
    return hostPort(this.#socket.remoteAddress ?? '', this.#socket.remotePort ?? 0);
  }

  /** Of a connection whose requests node reads. */
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
  /** How late the event loop is; measured, unless a test says so. */
  readonly lateMs?: () => number;
}

export class ConnectionGate {
  readonly admission: Admission;
  readonly #proxies: TrustedProxies;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #log: LogLimiter;
  /** By both ends: one port of a peer may hold connections to several ports of ours. */
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

  /** null: it is gone, and so is its socket. */
  accept(kind: ConnectionKind, socket: GatedSocket): AcceptedConnection | null {
    const { remoteAddress } = socket;
    // Gone between the kernel's accept and ours.
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
   * One that came in by a port of visitors has shown that it is a client's. It gives its place among them back and asks for one of clients, by
   * their rules alone: neither kind takes the other's places, and a visitors' share that is full turns no client away. false: it is gone.
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

  /** null: there is no room, and none to be told so. */
  #enter(kind: ConnectionKind, address: string): { ticket: Ticket; refusal: Fault | null } | null {
    // Bytes say nothing of whose they are, whoever passes them on.
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

  /** Before the first TLS handshake of a connection costs anything. false: its network begins too many, and the connection is reset. */
  handshakeBegins({ ticket, socket }: AcceptedConnection): boolean {
    if (this.admission.handshakeBegins(ticket, this.#lateMs(), this.#clock.monotonic())) return true;
    const fields = { reason: 'handshake-rate', kind: ticket.kind, visitor: ticket.network };
    this.#log.log('warn', 'handshake-rate', fields, 'TLS handshake reset; too many handshakes from the same network');
    socket.resetAndDestroy();
    return false;
  }

  /** The connection that a request or an upgrade came on. */
  find(socket: SocketEnds): AcceptedConnection | undefined {
    return this.#byEnds.get(endsOf(socket));
  }

  /** What a trusted proxy says of a control connection; null: it may go on. */
  speaksFor({ ticket }: AcceptedConnection, address: string): Fault | null {
    const refusal = this.admission.speaksFor(ticket, networkOf(address));
    if (refusal === null) return null;
    const fault = faultOf(refusal);
    this.#logRefusal(refusal.reason, 'control', { kind: 'control', visitor: address }, fault);
    return fault;
  }

  /** null: it counts for that account from here on. */
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

  /** A listener of a tunnel of this account; one closePort() is owed, unless it throws. */
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

  /** Of a connection whose requests node reads; one requestOver() is owed. */
  requestBegins(connection: AcceptedConnection): void {
    connection.requestBegins(this.#clock.monotonic());
  }

  requestOver(connection: AcceptedConnection): void {
    connection.requestOver(this.#clock.monotonic());
  }

  /** A request of a visitor behind a trusted proxy. null: it counts, and one uncountVisitor() is owed. */
  countVisitor(address: string): Fault | null {
    if (this.admission.requestBegins(networkOf(address))) return null;
    const fault = faultOf({ reason: 'address-limit', limit: this.admission.perNetwork });
    this.#logRefusal('address-limit', 'visitors', { kind: 'request', visitor: address }, fault);
    return fault;
  }

  uncountVisitor(address: string): void {
    this.admission.requestOver(networkOf(address));
  }

  /** An accept that failed, as when no descriptors are left: it costs that connection alone. */
  onAcceptError(error: Error): void {
    this.#log.log('warn', 'accept-error', { err: error }, 'cannot accept a connection');
  }

  #adopt(ticket: Ticket, socket: GatedSocket, refusal: Fault | null): AcceptedConnection {
    const accepted = new AcceptedConnection(ticket, socket, refusal, this);
    ticket.held = accepted;
    // One that is no socket of Node's is looked for only when it has become one.
    if (IS_FOUND_AGAIN.has(ticket.kind) && socket.heldBy === undefined) this.#remember(accepted);
    if (refusal !== null) this.#closeLate(accepted);
    if (socket.heldBy !== undefined) socket.heldBy(accepted);
    else (socket as Socket).once('close', () => accepted.onClosed());
    return accepted;
  }

  /** From the connection itself: it has an ordinary socket. */
  became(accepted: AcceptedConnection): void {
    if (IS_FOUND_AGAIN.has(accepted.ticket.kind)) this.#remember(accepted);
  }

  /** From the connection itself, once: its socket is closed. */
  left(accepted: AcceptedConnection): void {
    this.admission.leave(accepted.ticket);
    const { ends } = accepted;
    if (ends !== null && this.#byEnds.get(ends) === accepted) this.#byEnds.delete(ends);
  }

  #remember(accepted: AcceptedConnection): void {
    accepted.ends ??= endsOf(accepted.socket);
    this.#byEnds.set(accepted.ends, accepted);
  }

  /** One that is still refused by then has had its time to read why. */
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
  /** These two of a net.Socket only: others are not looked for. */
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: SocketEnds): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

const faultOf = ({ reason, limit }: AdmissionRefusal): Fault => {
  if (reason === 'address-limit') return new Fault('CONNECTIONS_PER_ADDRESS', { limit });
  return new Fault(reason === 'unauthenticated-limit' ? 'CONTROL_WAITING_LIMIT' : 'CONNECTIONS_FULL', { limit });
};

// ---- how late the event loop runs its timers ----
// The gate measures it only while handshakes begin: an idle process has no timer for it.

const MEASURE_MS = 10;
/** A measurement older than this says nothing any more. */
const FRESH_MS = 1000;

const latenessOf = (clock: Clock): (() => number) => {
  let dueMs: number | null = null;
  let lateMs = 0;
  let measuredMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monotonic();
    const last = nowMs - measuredMs < FRESH_MS ? lateMs : 0;
    // A timer that is due and has not run yet tells more than the last that ran.
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
