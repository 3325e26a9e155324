// One client's multiplexed session: a few carriers, streams spread over them. It outlives any single carrier.
import { CAPABILITY, type FrameTable, frameTable, type StreamHead, type StreamReason } from '@tunnel/protocol';
import type { Carrier } from '../carrier/carrier.ts';
import { DatagramFlows, type DatagramPathSlot } from '../datagram/datagram-flows.ts';
import type { DatagramAnswer, DatagramStream } from '../datagram/datagram-stream.ts';
import { MUX_LIMITS } from '../limits.ts';
import type { ReportInternalError } from '../loop/guard.ts';
import type { MuxClock } from '../loop/mux-clock.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { MuxStream, OpenAnswer } from '../stream/mux-stream.ts';
import { FramedConnection } from './framed-connection.ts';

/** visitors of one session that wait for a carrier at once */
const OPENS_WAITING_MAX = 4096;

export interface CarrierLoss {
  readonly carrierId: number;
  readonly reason: string;
  /** The peer broke the protocol: the whole session is closed, and its owner should say so. */
  readonly protocolViolation: boolean;
  readonly liveCarriers: number;
}

export interface MuxHandlers {
  /** A stream the peer opens: answer with accept() or refuse(). Without a handler every one is refused. */
  onStream?(stream: MuxStream, head: StreamHead): void;
  /** A stream in datagram mode, a flow: likewise. */
  onDatagramStream?(stream: DatagramStream, head: StreamHead): void;
  /** A carrier is gone, or takes no new streams any more: dial another one if the session goes on. */
  onCarrierLost(loss: CarrierLoss): void;
  /** After drain(): the last stream has ended. */
  onIdle?(): void;
  /** Something of ours threw; it cost the stream or the carrier that it worked for. Readers of streams report by themselves. */
  readonly report: ReportInternalError;
}

export interface MuxSessionOptions {
  readonly role: 'edge' | 'client';
  /** The process's budget; the session has its own share below it. */
  readonly budget: MemoryBudget;
  readonly clock: MuxClock;
  /** What both sides agreed on in Auth; none: version 1 as it is. */
  readonly capabilities?: readonly string[];
  readonly handlers: MuxHandlers;
}

/** Something under way that can be called off. */
export interface PendingStream {
  reset(reason: StreamReason): void;
}

export class MuxSession {
  readonly role: 'edge' | 'client';
  readonly budget: MemoryBudget;
  readonly clock: MuxClock;
  /** Whatever is not of version 1 is sent only when its name is here. */
  readonly capabilities: readonly string[];
  readonly frames: FrameTable;
  /** null: both sides did not agree on datagrams. */
  readonly flows: DatagramFlows | null;
  readonly #handlers: MuxHandlers;
  readonly #connections = new Map<number, FramedConnection>();
  /** Those that stand above the others. */
  readonly #ranks = new WeakMap<FramedConnection, number>();
  readonly #waiting = new OpenQueue();
  /** For datagrams, while it takes streams. */
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

  /** Carriers that take new streams. */
  get liveCarriers(): number {
    let live = 0;
    for (const connection of this.#connections.values()) if (!connection.retiring) live += 1;
    return live;
  }

  /** All open carriers, those that only finish their streams included. */
  get openCarriers(): number {
    return this.#connections.size;
  }

  /** New streams take a carrier of the highest rank that has one to give; all of one rank share them. `tag`: what both ends call it. */
  addCarrier(carrier: Carrier, rank = 0, tag = ''): number {
    const id = this.#nextCarrierId++;
    if (this.#state === 'closed') {
      carrier.destroy('the session is closed');
      return id;
    }
    const connection = new FramedConnection(this, id, carrier, tag);
    this.#connections.set(id, connection);
    if (rank !== 0) this.#ranks.set(connection, rank);
    // New flows take the better one, too.
    if (this.#reserved !== null && rank > this.#rankOf(this.#reserved)) this.#reserved = null;
    connection.start();
    this.#waiting.begin((head, answer) => this.#bestConnection()?.open(head, answer) ?? null);
    return id;
  }

  /** As its last ping says; 0 until one was answered, and for a carrier that is gone. */
  roundTripMs(carrierId: number): number {
    return this.#connections.get(carrierId)?.vitals.roundTrip.latestMs ?? 0;
  }

  /**
   * Exactly one of the answers comes, unless the opening is reset before. Without a carrier it waits a little for one.
   * null: the session takes no streams any more, or too many wait.
   */
  open(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    if (this.#state !== 'live') return null;
    const connection = this.#bestConnection();
    return connection === null ? this.#waiting.add(head, answer, this.now()) : connection.open(head, answer);
  }

  #bestConnection(): FramedConnection | null {
    let best: FramedConnection | null = null;
    for (const connection of this.#connections.values()) {
      if (!connection.takesStreams || connection === this.#reserved) continue;
      if (best === null || this.#isBetter(connection, best)) best = connection;
    }
    return best ?? (this.#reserved?.takesStreams ? this.#reserved : null);
  }

  #isBetter(one: FramedConnection, other: FramedConnection): boolean {
    const ahead = this.#rankOf(one) - this.#rankOf(other);
    return ahead === 0 ? one.load < other.load : ahead > 0;
  }

  #rankOf(connection: FramedConnection): number {
    return this.#ranks.get(connection) ?? 0;
  }

  // ---- datagrams ----

  /** Where open flows go while it is up. */
  set datagramPath(path: DatagramPathSlot | null) {
    if (this.flows !== null) this.flows.path = path;
  }

  get datagramPath(): DatagramPathSlot | null {
    return this.flows?.path ?? null;
  }

  /** false: datagrams are about to be behind, and only those of flows that there are should go. To be asked before openDatagrams(). */
  get takesFlows(): boolean {
    return this.#reserved?.lane.takesFlows ?? true;
  }

  /**
   * Opens a flow, whose number is chosen here; datagrams may follow at once. Exactly one of the answers comes, unless it is reset before.
   * null: the session has no datagrams, takes no streams any more, or has no carrier now: a datagram does not wait for one.
   */
  openDatagrams(head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream | null {
    if (this.#state !== 'live' || this.flows === null) return null;
    this.reserveForDatagrams();
    return this.#reserved?.openDatagrams(this.flows, head, answer) ?? null;
  }

  /** From the first udp tunnel on: one carrier is for datagrams, and byte streams go elsewhere while another one takes them. */
  reserveForDatagrams(): void {
    if (this.flows === null || this.#reserved?.takesStreams) return;
    this.#reserved = null;
    this.#reserved = this.#bestConnection();
  }

  /** One that came by the path. false: there is no such flow, or it is not open yet. */
  deliverDatagram(flow: number, bytes: Buffer, start: number, end: number): boolean {
    return this.flows?.deliver(flow, bytes, start, end) ?? false;
  }

  /** No new streams from either side; those under way go on. */
  drain(reason: string): void {
    if (this.#state !== 'live') return;
    this.#state = 'draining';
    this.#refuseWaiting('shutting-down', reason);
    for (const connection of [...this.#connections.values()])
      connection.retire({ code: 'shutting-down', text: reason });
    if (this.#liveStreams === 0) this.#handlers.onIdle?.();
  }

  /** Resets the streams that this side has opened for a tunnel, and refuses opens of the tunnel that wait for a carrier. */
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

  /** Once a second: pings, dead carriers, streams nobody answered, worn carriers. */
  tick(nowMs: number): void {
    for (const connection of [...this.#connections.values()]) {
      try {
        connection.tick(nowMs);
      } catch (error) {
        connection.abandon(error, 'carrier.tick');
      }
    }
    const reason = { code: 'carrier-lost', text: 'the client has no open carrier' } as const;
    this.#waiting.refuseOlder(nowMs - MUX_LIMITS.CARRIER_WAIT_MS, reason);
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
    // Whoever opens flows chooses their carrier; our own streams keep away from it, too.
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

// ---- opens that wait for a carrier ----
// Between a client's return and its first carrier, and while a lost one is dialled again: a visitor who comes just then waits a
// moment instead of being turned away.

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

  /** null: too many wait already. */
  add(head: StreamHead, answer: OpenAnswer, nowMs: number): PendingStream | null {
    if (this.#waiting.size >= OPENS_WAITING_MAX) return null;
    const open = new QueuedOpen(this.#waiting, head, answer, nowMs);
    this.#waiting.add(open);
    return open;
  }

  /** A carrier has come: `begin` opens for real, or gives null when it takes no more. */
  begin(begin: (head: StreamHead, answer: OpenAnswer) => MuxStream | null): void {
    for (const open of this.#waiting) {
      const stream = begin(open.head, open.answer);
      if (stream === null) return;
      this.#waiting.delete(open);
      open.begun(stream);
    }
  }

  /** Refuses those that came before `sinceMs`. */
  refuseOlder(sinceMs: number, reason: StreamReason): void {
    for (const open of this.#waiting) {
      // In the order they came: the first young one ends the look.
      if (open.sinceMs > sinceMs) return;
      this.#refuse(open, reason);
    }
  }

  /** Refuses the waiting opens of a tunnel. */
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
