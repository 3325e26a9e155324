// A carrier within a session: dispatches frames to streams and back, checks liveness, and resets its streams when the carrier closes.
import {
  decodeCompactOpen,
  decodeCredit,
  decodeOpen,
  decodeReason,
  FRAME,
  type FrameHandler,
  FrameParser,
  type FrameType,
  type OpenPayload,
  readUint32,
  type StreamHead,
  type StreamReason,
} from '@tunnel/protocol';
import { BROKEN } from '../bytes/byte-duplex.ts';
import type { Carrier, CarrierReceiver } from '../carrier/carrier.ts';
import type { DatagramFlows } from '../datagram/datagram-flows.ts';
import { DatagramLane } from '../datagram/datagram-lane.ts';
import { type DatagramAnswer, type DatagramConnection, DatagramStream } from '../datagram/datagram-stream.ts';
import type { MuxClock } from '../loop/mux-clock.ts';
import { smallMessages } from '../loop/tick-budget.ts';
import { initialWindow, ReceiveWindow } from '../stream/flow-control.ts';
import type { FramedStream } from '../stream/framed-stream.ts';
import { MuxStream, type OpenAnswer, type StreamConnection } from '../stream/mux-stream.ts';
import { CARRIER_DEAD_AFTER_MS, CarrierLiveness } from './carrier-liveness.ts';
import { FrameSender } from './frame-sender.ts';
import type { MuxSession } from './mux-session.ts';
import { STREAMS_PER_CARRIER, StreamTable } from './stream-table.ts';

/** Read buffers that slow readers can keep. Above the limit, bytes are copied. */
const CARRIER_PINNED_BUFFERS_MAX = 16;

/** First half of the payload of a ping behind GO_AWAY. Other pings have zeros there. */
const PING_BEHIND_GO_AWAY = 1;

const UNANSWERED: StreamReason = { code: 'timeout', text: 'no answer to OPEN' };
const NONE = Buffer.alloc(0);

export class FramedConnection implements FrameHandler, CarrierReceiver, StreamConnection, DatagramConnection {
  readonly id: number;
  /** Carrier name used by both ends. Empty if the carrier has no name. */
  readonly carrierTag: string;
  /** New streams use the carriers of the highest rank. */
  readonly rank: number;
  /** True if no new streams are accepted, because the peer sent GO_AWAY or the carrier is being rotated. */
  retiring = false;
  /** True after a GO_AWAY of this side until the peer has seen it. Until then, the peer can still open streams on the carrier. */
  #isLeaving = false;
  readonly clock: MuxClock;
  readonly #session: MuxSession;
  readonly #carrier: Carrier;
  readonly #sender: FrameSender;
  readonly #parser: FrameParser;
  readonly liveness: CarrierLiveness;
  readonly lane: DatagramLane;
  readonly #streams: StreamTable;
  /** Streams that wait until the carrier can take their data. Null on a carrier where no stream has waited since the last flush. */
  #waiters: Set<FramedStream> | null = null;
  #pins = 0;
  #keptReference = false;
  #closed = false;
  #current: Buffer = NONE;
  #borrowed = false;

  constructor(session: MuxSession, id: number, carrier: Carrier, carrierTag = '', rank = 0) {
    this.#session = session;
    this.clock = session.clock;
    this.id = id;
    this.carrierTag = carrierTag;
    this.rank = rank;
    this.#carrier = carrier;
    this.#sender = new FrameSender(carrier, session.frames);
    this.#parser = new FrameParser(this, session.frames);
    this.#streams = new StreamTable(session.role);
    this.liveness = new CarrierLiveness(session.clock.monotonic());
    this.lane = new DatagramLane(carrier, this, session.clock, this.liveness.roundTrip);
  }

  start(): void {
    this.#carrier.start(this);
    this.#ping(this.clock.monotonic());
  }

  get load(): number {
    return this.liveness.loadWith(this.#streams.size, this.#carrier.bytesSent);
  }

  get isUnused(): boolean {
    return this.#streams.size === 0;
  }

  get takesStreams(): boolean {
    return !this.#closed && !this.retiring && this.#streams.hasRoom;
  }

  open(head: StreamHead, answer: OpenAnswer): MuxStream {
    const now = this.clock.monotonic();
    const windowBytes = initialWindow(this.#session.budget, this.#session.byteStreams);
    const window = new ReceiveWindow(this.#session.budget, windowBytes, now);
    const stream = new MuxStream(this, this.#streams.nextId, now, { kind: 'opener', answer, window });
    this.#begin(stream, head, windowBytes);
    return stream;
  }

  openDatagrams(flows: DatagramFlows, head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream {
    const flow = flows.nextFlow();
    const identity = { id: this.#streams.nextId, flow, openedAtMs: this.clock.monotonic() };
    const stream = new DatagramStream(this, flows, identity, answer);
    flows.add(stream);
    this.#begin(stream, { ...head, flow }, 0);
    return stream;
  }

  #begin(stream: FramedStream, head: StreamHead, windowBytes: number): void {
    stream.tunnelId = head.tunnelId;
    this.#streams.addOwn(stream);
    this.#session.onStreamsChanged(1);
    this.#sender.open(stream.id, head, windowBytes);
  }

  // ---- from the carrier ----

  onBytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#closed) return false;
    const now = this.clock.monotonic();
    this.liveness.heard(end - start, now);
    this.#keptReference = false;
    this.#current = bytes;
    this.#borrowed = borrowed;
    const well = this.#parser.push(bytes, start, end);
    this.#current = NONE;
    if (!well) this.#violated(this.#parser.failure ?? 'not a frame');
    else this.lane.tellSeen(now);
    return this.#keptReference;
  }

  onReady(): void {
    const waiters = this.#waiters;
    if (waiters === null) return;
    this.#waiters = null;
    for (const stream of waiters) stream.carrierReady();
  }

  onClosed(reason: string): void {
    this.#end(reason, { code: 'carrier-lost', text: reason }, false);
  }

  // ---- from the parser ----

  onData(streamId: number, _bytes: Uint8Array, start: number, end: number): void {
    const stream = this.#find(streamId, 'data');
    if (stream === undefined) return;
    const borrowed = this.#borrowed && this.#pins < CARRIER_PINNED_BUFFERS_MAX;
    if (!stream.handleData(this.#current, start, end, borrowed)) {
      this.#parser.fail(`${end - start} bytes on stream ${streamId} without credit`);
    }
  }

  onDatagram(streamId: number, bytes: Uint8Array, start: number, end: number): void {
    // A received datagram is counted even if its flow has ended, because the sender has counted it.
    this.lane.took(end - start);
    const stream = this.#find(streamId, 'datagram');
    if (stream === undefined) return;
    // A datagram split between two reads lies in the frame parser's memory instead of the current read buffer.
    const whole = bytes === this.#current ? this.#current : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (!stream.handleDatagram(whole, start, end)) this.#parser.fail(`datagram does not fit stream ${streamId}`);
  }

  onFrame(type: FrameType, streamId: number, payload: Uint8Array): void {
    if (type === FRAME.OPEN_COMPACT) this.#onOpen(streamId, decodeCompactOpen(payload));
    else if (type === FRAME.OPEN) this.#onOpen(streamId, decodeOpen(payload));
    else if (streamId === 0) this.#onCarrierFrame(type, payload);
    else this.#onStreamFrame(type, streamId, payload);
  }

  #onOpen(streamId: number, open: OpenPayload | null): void {
    if (open === null) return this.#parser.fail(`OPEN of stream ${streamId} is not readable`);
    if (!this.#streams.takePeerId(streamId)) return this.#parser.fail(`stream ${streamId} was opened before`);
    if (open.head.flow !== undefined) return this.#onOpenDatagrams(streamId, open.head, open.head.flow);
    const accepter = { kind: 'accepter', creditBytes: open.windowBytes } as const;
    this.#offer(new MuxStream(this, streamId, this.clock.monotonic(), accepter), open.head);
  }

  #onOpenDatagrams(streamId: number, head: StreamHead, flow: number): void {
    const flows = this.#session.flows;
    if (flows === null) return this.#parser.fail(`OPEN of stream ${streamId}: datagrams were not agreed on`);
    if (!flows.isFree(flow)) return this.#parser.fail(`flow ${flow} was opened before`);
    const stream = new DatagramStream(this, flows, { id: streamId, flow, openedAtMs: this.clock.monotonic() }, null);
    flows.add(stream);
    this.#offer(stream, head);
  }

  #offer(stream: MuxStream | DatagramStream, head: StreamHead): void {
    this.#streams.addPeers(stream);
    this.#session.onStreamsChanged(1);
    if (this.#streams.size > STREAMS_PER_CARRIER) {
      stream.refuse({ code: 'limit', text: 'too many streams' });
      return;
    }
    try {
      if (stream instanceof DatagramStream) this.#session.onDatagramStream(this, stream, head);
      else this.#session.onStream(stream, head);
    } catch (error) {
      this.report(error, 'stream.offered');
      stream.reset(BROKEN);
    }
  }

  #onStreamFrame(type: FrameType, streamId: number, payload: Uint8Array): void {
    const stream = this.#find(streamId, `frame ${type}`);
    if (stream === undefined || this.#handle(type, stream, payload)) return;
    this.#parser.fail(`frame ${type} does not fit stream ${streamId}`);
  }

  /** Returns undefined if the stream has ended. A stream id that was never opened is a protocol violation. */
  #find(streamId: number, what: string): FramedStream | undefined {
    const stream = this.#streams.get(streamId);
    if (stream === undefined && !this.#streams.wasOpen(streamId)) {
      this.#parser.fail(`${what} on stream ${streamId}, which was never opened`);
    }
    return stream;
  }

  #handle(type: FrameType, stream: FramedStream, payload: Uint8Array): boolean {
    if (type === FRAME.FIN) return stream.handleFin();
    if (type === FRAME.OPENED || type === FRAME.WINDOW) {
      const credit = decodeCredit(payload);
      if (credit === null || type === FRAME.WINDOW) return credit !== null && stream.handleCredit(credit);
      this.#streams.answered(stream);
      return stream.handleOpened(credit);
    }
    const reason = decodeReason(payload);
    if (reason === null) return false;
    this.#streams.answered(stream);
    if (type === FRAME.REFUSED) return stream.handleRefused(reason);
    stream.handleReset(reason);
    return true;
  }

  #onCarrierFrame(type: FrameType, payload: Uint8Array): void {
    if (type === FRAME.GO_AWAY) {
      const reason = decodeReason(payload);
      if (reason === null) this.#parser.fail('GO_AWAY is not readable');
      else this.#retired(reason);
    } else if (type === FRAME.SEEN) {
      if (!this.lane.onSeen(payload)) this.#parser.fail('SEEN for data that was never sent');
    } else if (type === FRAME.PING) this.#sender.pong(payload);
    else if (readUint32(payload, 0) === PING_BEHIND_GO_AWAY) this.#left();
    else if (!this.liveness.onPong(readUint32(payload, 4), this.clock.monotonic())) this.#ping(this.clock.monotonic());
  }

  // ---- from the streams ----

  sendOpened(stream: MuxStream): ReceiveWindow {
    const windowBytes = initialWindow(this.#session.budget, this.#session.byteStreams);
    this.#sender.credit(FRAME.OPENED, stream.id, windowBytes);
    return new ReceiveWindow(this.#session.budget, windowBytes, this.clock.monotonic());
  }

  sendAccepted(stream: DatagramStream): void {
    this.#sender.credit(FRAME.OPENED, stream.id, 0);
  }

  sendDatagram(stream: DatagramStream, bytes: Buffer, start: number, end: number): 'sent' | 'behind' {
    return this.lane.send(stream.id, bytes, start, end);
  }

  sendRefused(stream: FramedStream, reason: StreamReason): void {
    this.#sender.reason(FRAME.REFUSED, stream.id, reason);
  }

  sendFin(stream: MuxStream): void {
    this.#sender.fin(stream.id);
  }

  sendReset(stream: FramedStream, reason: StreamReason): void {
    this.#sender.reason(FRAME.RESET, stream.id, reason);
  }

  sendWindow(stream: MuxStream, window: ReceiveWindow): void {
    const nowMs = this.clock.monotonic();
    const { latestMs: roundTripMs, shortestMs } = this.liveness.roundTrip;
    // Uses the real clock, because the duration of event loop turns matters and the session's clock may be simulated.
    const isShared = smallMessages.areAbout(performance.now());
    const credit = window.grant({ roundTripMs, shortestMs, liveStreams: this.#session.byteStreams, isShared, nowMs });
    if (credit > 0) this.#sender.credit(FRAME.WINDOW, stream.id, credit);
  }

  sendData(stream: MuxStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const free = this.#carrier.sendData(stream.id, bytes, start, end, borrowed);
    if (!free) this.#wait(stream);
    return free;
  }

  mustWait(stream: MuxStream, bytes: number): boolean {
    if (!this.#carrier.isFull(bytes)) return false;
    this.#wait(stream);
    return true;
  }

  #wait(stream: MuxStream): void {
    this.#waiters ??= new Set();
    this.#waiters.add(stream);
  }

  pinned(delta: 1 | -1): void {
    this.#pins += delta;
  }

  keptReference(): void {
    this.#keptReference = true;
  }

  report(error: unknown, where: string): void {
    this.#session.report(error, where);
  }

  forget(stream: FramedStream): void {
    if (!this.#streams.remove(stream)) return;
    this.#waiters?.delete(stream);
    this.#session.onStreamsChanged(-1);
    this.#closeIfRetired();
  }

  // ---- time ----

  tick(nowMs: number): void {
    if (this.#closed) return;
    this.liveness.tick(this.#carrier.bytesSent, nowMs);
    if (this.liveness.isDead(nowMs)) {
      this.#carrier.destroy(`nothing heard for ${CARRIER_DEAD_AFTER_MS / 1000} s`);
      return;
    }
    if (this.liveness.isPingDue(nowMs, this.isUnused)) this.#ping(nowMs);
    for (let stream = this.#streams.takeOverdue(nowMs); stream; stream = this.#streams.takeOverdue(nowMs)) {
      this.sendReset(stream, UNANSWERED);
      stream.handleReset(UNANSWERED);
    }
    const isWorn = this.liveness.isWorn(nowMs, this.#carrier.bytesSent) || !this.#streams.hasIds;
    if (isWorn && !this.retiring) this.retire({ code: 'cancelled', text: 'rotated' });
  }

  #ping(nowMs: number): void {
    this.liveness.pinged(nowMs);
    this.#sender.ping(nowMs);
  }

  // ---- the end ----

  /** Closes the carrier and its streams after an internal error. Other carriers of the session stay open. */
  abandon(error: unknown, where: string): void {
    this.report(error, where);
    this.#carrier.destroy(BROKEN.text);
  }

  /** Stops new streams in both directions. The carrier closes after its last stream has ended. */
  retire(reason: StreamReason): void {
    if (this.#closed) return;
    this.#sender.reason(FRAME.GO_AWAY, 0, reason);
    if (this.retiring) return;
    this.#isLeaving = true;
    this.#sender.ping(this.clock.monotonic(), PING_BEHIND_GO_AWAY);
    this.#retired(reason);
  }

  /** The peer has answered the ping behind our GO_AWAY, so streams opened before are known, and none can follow. */
  #left(): void {
    this.#isLeaving = false;
    this.#closeIfRetired();
  }

  #retired(reason: StreamReason): void {
    this.retiring = true;
    this.#session.onGoAway(this, reason);
    // If the session is shutting down, no other carrier exists, so datagram flows stay on this carrier.
    if (reason.code !== 'shutting-down') for (const stream of this.#streams.values()) stream.handleRetiring();
    this.#closeIfRetired();
  }

  /** Resets all streams opened by this side for a tunnel, at both ends. */
  resetTunnel(tunnelId: string, reason: StreamReason): void {
    for (const stream of this.#streams.values()) {
      if (stream.tunnelId !== tunnelId) continue;
      this.sendReset(stream, reason);
      stream.handleReset(reason);
    }
  }

  close(reason: StreamReason): void {
    if (this.#closed) return;
    for (const stream of this.#streams.values()) this.sendReset(stream, reason);
    this.#carrier.end();
    this.#end(reason.text, reason, false);
  }

  #closeIfRetired(): void {
    const isSpent = this.retiring && !this.#isLeaving && this.#streams.size === 0;
    if (isSpent && !this.#closed && this.#session.role === 'client') this.#carrier.end();
  }

  #violated(text: string): void {
    if (this.#closed) return;
    const reason = { code: 'protocol-violation', text } as const;
    this.#sender.reason(FRAME.GO_AWAY, 0, reason);
    this.#carrier.end();
    this.#end(text, reason, true);
  }

  #end(text: string, reason: StreamReason, violation: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.lane.close();
    this.#waiters = null;
    for (const stream of this.#streams.values()) stream.handleReset(reason);
    this.#session.onClosed(this, text, violation);
  }
}
