// Multiplexed session of a client: streams spread over a few carriers. The session outlives its carriers.
import { CAPABILITY, type FrameTable, frameTable, type StreamHead, type StreamReason } from '@tunnel/protocol';
import type { Carrier } from '../carrier/carrier.ts';
import { DatagramFlows, type DatagramPathSlot } from '../datagram/datagram-flows.ts';
import type { DatagramAnswer, DatagramStream } from '../datagram/datagram-stream.ts';
import { MUX_LIMITS } from '../limits.ts';
import type { ReportInternalError } from '../loop/guard.ts';
import type { MuxClock } from '../loop/mux-clock.ts';
import { tickFlush } from '../loop/tick-flush.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { MuxStream, OpenAnswer } from '../stream/mux-stream.ts';
import { FramedConnection } from './framed-connection.ts';

/** Maximum number of new streams of a session that wait for a carrier. */
const OPENS_WAITING_MAX = 4096;

const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the client has no open carrier' };

export interface CarrierLoss {
  readonly carrierId: number;
  readonly reason: string;
  /** True if the peer violated the protocol. The whole session is closed, and its owner should report the violation. */
  readonly protocolViolation: boolean;
  readonly liveCarriers: number;
}

export interface MuxHandlers {
  /** Called when the peer opens a stream. Answer with accept() or refuse(). Without a handler every stream is refused. */
  onStream?(stream: MuxStream, head: StreamHead): void;
  /** Called when the peer opens a datagram stream (a flow). Answer with accept() or refuse(). */
  onDatagramStream?(stream: DatagramStream, head: StreamHead): void;
  /** Called when a carrier closed or accepts no new streams. The client should dial another carrier if the session continues. */
  onCarrierLost(loss: CarrierLoss): void;
  /** Called after drain() when the session's last stream has ended. */
  onIdle?(): void;
  /** Reports an internal error, which ended the affected stream or carrier. Readers of streams report their own errors. */
  readonly report: ReportInternalError;
}

export interface MuxSessionOptions {
  readonly role: 'edge' | 'client';
  /** Memory budget of the process for received data. The session takes its share from the budget. */
  readonly budget: MemoryBudget;
  readonly clock: MuxClock;
  /** Protocol capabilities that both sides negotiated in Auth. Empty for protocol version 1 without extensions. */
  readonly capabilities?: readonly string[];
  readonly handlers: MuxHandlers;
}

/** A stream that is opening and can be canceled. */
export interface PendingStream {
  reset(reason: StreamReason): void;
}

export class MuxSession {
  readonly role: 'edge' | 'client';
  readonly budget: MemoryBudget;
  readonly clock: MuxClock;
  /** Negotiated protocol capabilities. Extensions of version 1 are used only if listed here. */
  readonly capabilities: readonly string[];
  readonly frames: FrameTable;
  /** Datagram flows of the session. Null if datagrams were not negotiated. */
  readonly flows: DatagramFlows | null;
  readonly #handlers: MuxHandlers;
  readonly #connections = new Map<number, FramedConnection>();
  readonly #waiting = new OpenQueue();
  /** Carrier reserved for datagrams, as long as it accepts streams. */
  #reserved: FramedConnection | null = null;
  #nextCarrierId = 1;
  #liveStreams = 0;
  #state: 'live' | 'draining' | 'closed' = 'live';

  constructor(options: MuxSessionOptions) {
    this.role = options.role;
    this.budget = new MemoryBudget(MUX_LIMITS.SESSION_BUDGET_BYTES, options.budget);
    this.clock = options.clock;
    this.capabilities = options.capabilities ?? [];
    this.frames = frameTable(this.capabilities);
    this.flows = this.capabilities.includes(CAPABILITY.DATAGRAM) ? new DatagramFlows(options.role) : null;
    this.#handlers = options.handlers;
  }

  now(): number {
    return this.clock.monotonic();
  }

  get liveStreams(): number {
    return this.#liveStreams;
  }

  get byteStreams(): number {
    return this.#liveStreams - (this.flows?.size ?? 0);
  }

  get state(): 'live' | 'draining' | 'closed' {
    return this.#state;
  }

  /** Number of the session's carriers that accept new streams. */
  get liveCarriers(): number {
    let live = 0;
    for (const connection of this.#connections.values()) if (!connection.retiring) live += 1;
    return live;
  }

  /** Number of the session's open carriers, including carriers that only finish their streams. */
  get openCarriers(): number {
    return this.#connections.size;
  }

  /**
   * Adds a carrier. New streams use carriers of the highest rank available; carriers of equal rank share the load. `tag` is the carrier
   * name used by both ends.
   */
  addCarrier(carrier: Carrier, rank = 0, tag = ''): number {
    const id = this.#nextCarrierId++;
    if (this.#state === 'closed') {
      carrier.destroy('the session is closed');
      return id;
    }
    const connection = new FramedConnection(this, id, carrier, tag, rank);
    this.#connections.set(id, connection);
    // A carrier of higher rank also replaces the carrier reserved for datagrams, so that new flows use the better one.
    if (this.#reserved !== null && rank > this.#reserved.rank) this.#reserved = null;
    connection.start();
    this.#waiting.begin((head, answer) => this.#bestConnection()?.open(head, answer) ?? null);
    return id;
  }

  /** Returns the round trip of the last ping. 0 before the first PONG, and for a carrier that has closed. */
  roundTripMs(carrierId: number): number {
    return this.#connections.get(carrierId)?.liveness.roundTrip.latestMs ?? 0;
  }

  /**
   * Opens a stream. Exactly one of the answer callbacks is called, unless the stream is reset before. Waits up to CARRIER_WAIT_MS for a
   * carrier if none is open. Returns null if the session accepts no streams or too many opens are waiting.
   */
  open(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    if (this.#state !== 'live') return null;
    const connection = this.#bestConnection();
    return connection === null ? this.#waiting.add(head, answer, this.now()) : connection.open(head, answer);
  }

  /**
   * Newest carrier without streams that the session can do without. Null if there is none. The carrier reserved for datagrams is kept.
   */
  get spareCarrier(): number | null {
    let spare: FramedConnection | null = null;
    for (const connection of this.#connections.values()) {
      if (connection.takesStreams && connection.isUnused && connection !== this.#reserved) spare = connection;
    }
    return spare?.id ?? null;
  }

  /** Ends the use of a carrier: its streams finish, new streams use other carriers, and the carrier closes after its last stream. */
  retireCarrier(carrierId: number, reason: StreamReason): void {
    this.#connections.get(carrierId)?.retire(reason);
  }

  #bestConnection(): FramedConnection | null {
    let best: FramedConnection | null = null;
    for (const connection of this.#connections.values()) {
      if (!connection.takesStreams || connection === this.#reserved) continue;
      if (best === null || isBetter(connection, best)) best = connection;
    }
    return best ?? (this.#reserved?.takesStreams ? this.#reserved : null);
  }

  // ---- datagrams ----

  /** UDP path used for the datagrams of open flows while the path is up. */
  set datagramPath(path: DatagramPathSlot | null) {
    if (this.flows !== null) this.flows.path = path;
  }

  get datagramPath(): DatagramPathSlot | null {
    return this.flows?.path ?? null;
  }

  /** False if datagrams are close to falling behind; only existing flows should send then. Check before openDatagrams(). */
  get takesFlows(): boolean {
    return this.#reserved?.lane.takesFlows ?? true;
  }

  /**
   * Opens a flow and assigns its number. Datagrams can be sent immediately. Exactly one of the answer callbacks is called, unless the flow
   * is reset before. Returns null if the session has no datagrams, accepts no streams, or has no carrier now, because datagrams do not wait
   * for a carrier.
   */
  openDatagrams(head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream | null {
    if (this.#state !== 'live' || this.flows === null) return null;
    this.reserveForDatagrams();
    return this.#reserved?.openDatagrams(this.flows, head, answer) ?? null;
  }

  /** Reserves a carrier for datagrams when the first UDP tunnel opens. Byte streams use other carriers while any accepts streams. */
  reserveForDatagrams(): void {
    if (this.flows === null || this.#reserved?.takesStreams) return;
    this.#reserved = null;
    this.#reserved = this.#bestConnection();
  }

  /** Delivers a datagram received on the UDP path. Returns false if the flow does not exist or is not open yet. */
  deliverDatagram(flow: number, bytes: Buffer, start: number, end: number): boolean {
    return this.flows?.deliver(flow, bytes, start, end) ?? false;
  }

  /** Stops new streams from both sides of the session. Existing streams continue. */
  drain(reason: string): void {
    if (this.#state !== 'live') return;
    this.#state = 'draining';
    this.#refuseWaiting('shutting-down', reason);
    for (const connection of [...this.#connections.values()])
      connection.retire({ code: 'shutting-down', text: reason });
    if (this.#liveStreams === 0) this.#handlers.onIdle?.();
  }

  /** Resets all streams opened by this side for a tunnel, and refuses the tunnel's opens that wait for a carrier. */
  resetTunnel(tunnelId: string, reason: StreamReason): void {
    this.#waiting.refuseOf(tunnelId, reason);
    for (const connection of [...this.#connections.values()]) connection.resetTunnel(tunnelId, reason);
  }

  close(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#refuseWaiting(reason.code, reason.text);
    for (const connection of [...this.#connections.values()]) connection.close(reason);
  }

  /**
   * Called once per second: sends pings, closes dead carriers, times out unanswered opens, and rotates worn carriers. Allocates nothing
   * while there is nothing to do, because an edge calls it for thousands of idle sessions.
   */
  tick(nowMs: number): void {
    for (const connection of this.#connections.values()) {
      try {
        connection.tick(nowMs);
      } catch (error) {
        connection.abandon(error, 'carrier.tick');
      }
    }
    tickFlush.flushNow();
    this.#waiting.refuseOlder(nowMs - MUX_LIMITS.CARRIER_WAIT_MS, NO_CARRIER);
  }

  #refuseWaiting(code: StreamReason['code'], text: string): void {
    this.#waiting.refuseOlder(Number.POSITIVE_INFINITY, { code, text });
  }

  // ---- from the connections ----

  report(error: unknown, where: string): void {
    this.#handlers.report(error, where);
  }

  onStream(stream: MuxStream, head: StreamHead): void {
    const handler = this.#handlers.onStream;
    if (this.#state !== 'live') stream.refuse({ code: 'shutting-down', text: 'the session accepts no new streams' });
    else if (handler === undefined) stream.refuse({ code: 'unknown-tunnel', text: 'streams are not accepted' });
    else handler.call(this.#handlers, stream, head);
  }

  onDatagramStream(connection: FramedConnection, stream: DatagramStream, head: StreamHead): void {
    const handler = this.#handlers.onDatagramStream;
    // The opener of flows chooses their carrier. Byte streams opened by this side avoid the same carrier.
    this.#reserved = connection;
    if (this.#state !== 'live') stream.refuse({ code: 'shutting-down', text: 'the session accepts no new streams' });
    else if (handler === undefined) stream.refuse({ code: 'unknown-tunnel', text: 'flows are not accepted' });
    else handler.call(this.#handlers, stream, head);
  }

  onStreamsChanged(delta: 1 | -1): void {
    this.#liveStreams += delta;
    if (this.#liveStreams === 0 && this.#state === 'draining') this.#handlers.onIdle?.();
  }

  onGoAway(connection: FramedConnection, reason: StreamReason): void {
    if (this.#state === 'live' && reason.code !== 'shutting-down') this.#tellLost(connection, reason.text, false);
  }

  onClosed(connection: FramedConnection, reason: string, violation: boolean): void {
    const known = !connection.retiring;
    this.#connections.delete(connection.id);
    if (this.#reserved === connection) this.#reserved = null;
    if (this.#state === 'closed') return;
    if (violation) this.close({ code: 'protocol-violation', text: reason });
    if (known || violation) this.#tellLost(connection, reason, violation);
  }

  #tellLost(connection: FramedConnection, reason: string, protocolViolation: boolean): void {
    this.#handlers.onCarrierLost({
      carrierId: connection.id,
      reason,
      protocolViolation,
      liveCarriers: this.liveCarriers,
    });
  }
}

const isBetter = (one: FramedConnection, other: FramedConnection): boolean =>
  one.rank === other.rank ? one.load < other.load : one.rank > other.rank;

// ---- opens that wait for a carrier ----
// After a client has reconnected and before its first carrier is open, or while a lost carrier is dialed again, new visitors wait
// a moment instead of being rejected.

class QueuedOpen implements PendingStream {
  readonly head: StreamHead;
  readonly answer: OpenAnswer;
  readonly sinceMs: number;
  readonly #owner: Set<QueuedOpen>;
  #stream: MuxStream | null = null;

  constructor(owner: Set<QueuedOpen>, head: StreamHead, answer: OpenAnswer, sinceMs: number) {
    this.#owner = owner;
    this.head = head;
    this.answer = answer;
    this.sinceMs = sinceMs;
  }

  begun(stream: MuxStream): void {
    this.#stream = stream;
  }

  reset(reason: StreamReason): void {
    this.#owner.delete(this);
    this.#stream?.reset(reason);
  }
}

class OpenQueue {
  readonly #waiting = new Set<QueuedOpen>();

  /** Queues the opening of a stream until a carrier is available. Returns null if too many are waiting. */
  add(head: StreamHead, answer: OpenAnswer, nowMs: number): PendingStream | null {
    if (this.#waiting.size >= OPENS_WAITING_MAX) return null;
    const open = new QueuedOpen(this.#waiting, head, answer, nowMs);
    this.#waiting.add(open);
    return open;
  }

  /** Called when a carrier was added. `begin` opens a stream, or returns null if the carrier accepts no more streams. */
  begin(begin: (head: StreamHead, answer: OpenAnswer) => MuxStream | null): void {
    for (const open of this.#waiting) {
      const stream = begin(open.head, open.answer);
      if (stream === null) return;
      this.#waiting.delete(open);
      open.begun(stream);
    }
  }

  /** Refuses streams that have waited for a carrier since before `sinceMs`. */
  refuseOlder(sinceMs: number, reason: StreamReason): void {
    for (const open of this.#waiting) {
      // Opens are in order of arrival, so the first younger entry ends the loop.
      if (open.sinceMs > sinceMs) return;
      this.#refuse(open, reason);
    }
  }

  /** Refuses all streams of a tunnel that wait for a carrier. */
  refuseOf(tunnelId: string, reason: StreamReason): void {
    for (const open of this.#waiting) if (open.head.tunnelId === tunnelId) this.#refuse(open, reason);
  }

  #refuse(open: QueuedOpen, reason: StreamReason): void {
    this.#waiting.delete(open);
    try {
      open.answer.onRefused(reason);
    } catch (error) {
      open.answer.abandon(error, 'stream.refused');
    }
  }
}
