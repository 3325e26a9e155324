// One carrier inside a session: frames to streams and back, ids, liveness, and the end of all its streams when it goes.
// Ids belong to the carrier and only rise, so a late frame of a stream that is over is told from one that never was.
import {
  decodeCredit,
  decodeOpen,
  decodeReason,
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeReason,
  FRAME,
  type FrameHandler,
  FrameParser,
  type FrameTable,
  type FrameType,
  PING_PAYLOAD_BYTES,
  readUint32,
  type StreamHead,
  type StreamReason,
  writeUint32,
} from '@tunnel/protocol';
import { BROKEN } from './byte-duplex.ts';
import type { Carrier, CarrierReceiver } from './carrier.ts';
import { firstWindowOf, type MemoryBudget, ReceiveWindow, RoundTrip } from './flow-control.ts';
import type { ReportInternalError } from './guard.ts';
import { MUX_LIMITS } from './limits.ts';
import { MuxStream, type OpenAnswer, type StreamConnection } from './mux-stream.ts';

export interface FramedConnectionOwner {
  readonly role: 'edge' | 'client';
  readonly budget: MemoryBudget;
  /** The frames that both sides agreed on. */
  readonly frames: FrameTable;
  readonly liveStreams: number;
  now(): number;
  onStream(stream: MuxStream, head: StreamHead): void;
  onStreamsChanged(delta: 1 | -1): void;
  onGoAway(connection: FramedConnection, reason: StreamReason): void;
  onClosed(connection: FramedConnection, reason: string, violation: boolean): void;
  readonly report: ReportInternalError;
}

/** Even ids are opened by the edge, odd ones by the client. */
const FIRST_ID = { edge: 2, client: 1 } as const;
/** A carrier this near to the end of its ids takes no new streams. */
const LAST_ID = 0xffff_0000;
const MIB = 1024 * 1024;

export class FramedConnection implements FrameHandler, CarrierReceiver, StreamConnection {
  readonly id: number;
  readonly openedAtMs: number;
  /** No new streams: the peer said so, or it is being rotated. */
  retiring = false;
  readonly roundTrip = new RoundTrip();
  readonly #owner: FramedConnectionOwner;
  readonly #carrier: Carrier;
  readonly #parser: FrameParser;
  readonly #streams = new Map<number, MuxStream>();
  readonly #opening = new Set<MuxStream>();
  #waiters = new Set<MuxStream>();
  #nextId: number;
  #lastPeerId = 0;
  #pins = 0;
  #keptReference = false;
  #lastHeardMs: number;
  #lastPingMs: number;
  #receivedBytes = 0;
  /** Both ways, up to the last tick, and between the last two. */
  #movedBytes = 0;
  #recentBytes = 0;
  #closed = false;
  #current: Buffer = NONE;
  #borrowed = false;

  constructor(owner: FramedConnectionOwner, id: number, carrier: Carrier) {
    this.#owner = owner;
    this.id = id;
    this.#carrier = carrier;
    this.#parser = new FrameParser(this, owner.frames);
    this.#nextId = FIRST_ID[owner.role];
    this.openedAtMs = owner.now();
    this.#lastHeardMs = this.openedAtMs;
    this.#lastPingMs = this.openedAtMs;
  }

  start(): void {
    this.#carrier.start(this);
    this.#ping(this.#owner.now());
  }

  /** What to weigh when a stream is placed: its streams, and what it carries (a MiB a second counts as one stream). */
  get load(): number {
    return this.#streams.size + this.#recentBytes / MIB;
  }

  get takesStreams(): boolean {
    return (
      !this.#closed && !this.retiring && this.#streams.size < MUX_LIMITS.STREAMS_PER_CARRIER && this.#nextId < LAST_ID
    );
  }

  get bytesSent(): number {
    return this.#carrier.bytesSent;
  }

  open(head: StreamHead, answer: OpenAnswer): MuxStream {
    const now = this.#owner.now();
    const windowBytes = firstWindowOf(this.#owner.budget, this.#owner.liveStreams);
    const window = new ReceiveWindow(this.#owner.budget, windowBytes, now);
    const stream = new MuxStream(this, this.#nextId, now, { kind: 'opener', answer, window });
    this.#nextId += 2;
    this.#add(stream);
    this.#opening.add(stream);
    this.#carrier.send(encodeOpen(stream.id, head, windowBytes));
    return stream;
  }

  // ---- from the carrier ----

  onBytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#closed) return false;
    this.#lastHeardMs = this.#owner.now();
    this.#receivedBytes += end - start;
    this.#keptReference = false;
    this.#current = bytes;
    this.#borrowed = borrowed;
    const well = this.#parser.push(bytes, start, end);
    this.#current = NONE;
    if (!well) this.#violated(this.#parser.failure ?? 'not a frame');
    return this.#keptReference;
  }

  onReady(): void {
    const waiters = this.#waiters;
    if (waiters.size === 0) return;
    this.#waiters = new Set();
    for (const stream of waiters) stream.carrierReady();
  }

  onClosed(reason: string): void {
    this.#end(reason, { code: 'carrier-lost', text: reason }, false);
  }

  // ---- from the parser ----

  onData(streamId: number, _bytes: Uint8Array, start: number, end: number): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      if (!this.#wasOpen(streamId)) this.#parser.fail(`data on stream ${streamId}, which was never open`);
      return;
    }
    const borrowed = this.#borrowed && this.#pins < MUX_LIMITS.CARRIER_PINNED_BUFFERS_MAX;
    if (!stream.handleData(this.#current, start, end, borrowed)) {
      this.#parser.fail(`${end - start} bytes on stream ${streamId} without credit`);
    }
  }

  onFrame(type: FrameType, streamId: number, payload: Uint8Array): void {
    if (type === FRAME.OPEN) this.#onOpen(streamId, payload);
    else if (streamId === 0) this.#onCarrierFrame(type, payload);
    else this.#onStreamFrame(type, streamId, payload);
  }

  #onOpen(streamId: number, payload: Uint8Array): void {
    const open = decodeOpen(payload);
    const mine = streamId % 2 === FIRST_ID[this.#owner.role] % 2;
    if (open === null) return this.#parser.fail(`OPEN of stream ${streamId} is not readable`);
    if (mine || streamId <= this.#lastPeerId) return this.#parser.fail(`stream ${streamId} was opened before`);
    this.#lastPeerId = streamId;
    const stream = new MuxStream(this, streamId, this.#owner.now(), {
      kind: 'accepter',
      creditBytes: open.windowBytes,
    });
    this.#add(stream);
    if (this.#streams.size > MUX_LIMITS.STREAMS_PER_CARRIER) stream.refuse({ code: 'limit', text: 'too many streams' });
    else this.#offer(stream, open.head);
  }

  #offer(stream: MuxStream, head: StreamHead): void {
    try {
      this.#owner.onStream(stream, head);
    } catch (error) {
      this.report(error, 'stream.offered');
      stream.reset(BROKEN);
    }
  }

  #onStreamFrame(type: FrameType, streamId: number, payload: Uint8Array): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      if (!this.#wasOpen(streamId)) this.#parser.fail(`frame ${type} on stream ${streamId}, which was never open`);
      return;
    }
    const credit = type === FRAME.OPENED || type === FRAME.WINDOW ? decodeCredit(payload) : null;
    const reason = type === FRAME.REFUSED || type === FRAME.RESET ? decodeReason(payload) : null;
    let taken = false;
    if (type === FRAME.FIN) taken = payload.length === 0 && stream.handleFin();
    else if (type === FRAME.OPENED) taken = credit !== null && this.#opened(stream, credit);
    else if (type === FRAME.WINDOW) taken = credit !== null && stream.handleCredit(credit);
    else if (reason !== null) taken = this.#ended(type, stream, reason);
    if (!taken) this.#parser.fail(`frame ${type} does not fit stream ${streamId}`);
  }

  #opened(stream: MuxStream, credit: number): boolean {
    this.#opening.delete(stream);
    return stream.handleOpened(credit);
  }

  #ended(type: FrameType, stream: MuxStream, reason: StreamReason): boolean {
    this.#opening.delete(stream);
    if (type === FRAME.REFUSED) return stream.handleRefused(reason);
    stream.handleReset(reason);
    return true;
  }

  #onCarrierFrame(type: FrameType, payload: Uint8Array): void {
    if (type === FRAME.GO_AWAY) {
      const reason = decodeReason(payload);
      if (reason === null) return this.#parser.fail('GO_AWAY is not readable');
      this.retiring = true;
      this.#owner.onGoAway(this, reason);
      this.#closeIfRetired();
      return;
    }
    if (payload.length !== PING_PAYLOAD_BYTES) return this.#parser.fail(`ping of ${payload.length} bytes`);
    if (type === FRAME.PING) this.#carrier.send(encodePing(FRAME.PONG, payload));
    else this.#onPong(readUint32(payload, 4));
  }

  /** The peer echoes our own time; an answer older than the carrier may live is none. */
  #onPong(sentMs: number): void {
    const elapsed = (Math.floor(this.#owner.now()) - sentMs) >>> 0;
    if (elapsed >= MUX_LIMITS.CARRIER_DEAD_AFTER_MS) return;
    if (!this.roundTrip.measured(elapsed)) this.#ping(this.#owner.now());
  }

  /** Ids only rise, so everything up to the last one was open once. */
  #wasOpen(streamId: number): boolean {
    const mine = streamId % 2 === FIRST_ID[this.#owner.role] % 2;
    return mine ? streamId < this.#nextId : streamId <= this.#lastPeerId;
  }

  // ---- from the streams ----

  sendOpened(stream: MuxStream): ReceiveWindow {
    const windowBytes = firstWindowOf(this.#owner.budget, this.#owner.liveStreams);
    this.#carrier.send(encodeCredit(FRAME.OPENED, stream.id, windowBytes));
    return new ReceiveWindow(this.#owner.budget, windowBytes, this.#owner.now());
  }

  sendRefused(stream: MuxStream, reason: StreamReason): void {
    this.#carrier.send(encodeReason(FRAME.REFUSED, stream.id, reason));
  }

  sendFin(stream: MuxStream): void {
    this.#carrier.send(encodeFin(stream.id));
  }

  sendReset(stream: MuxStream, reason: StreamReason): void {
    this.#carrier.send(encodeReason(FRAME.RESET, stream.id, reason));
  }

  sendWindow(stream: MuxStream, window: ReceiveWindow): void {
    const path = {
      roundTripMs: this.roundTrip.latestMs,
      shortestMs: this.roundTrip.shortestMs,
      liveStreams: this.#owner.liveStreams,
      nowMs: this.#owner.now(),
    };
    const credit = window.grant(path);
    if (credit > 0) this.#carrier.send(encodeCredit(FRAME.WINDOW, stream.id, credit));
  }

  sendData(stream: MuxStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const free = this.#carrier.sendData(stream.id, bytes, start, end, borrowed);
    if (!free) this.#waiters.add(stream);
    return free;
  }

  mustWait(stream: MuxStream, bytes: number): boolean {
    if (!this.#carrier.isFull(bytes)) return false;
    this.#waiters.add(stream);
    return true;
  }

  pinned(delta: 1 | -1): void {
    this.#pins += delta;
    if (delta === 1) this.#keptReference = true;
  }

  keptReference(): void {
    this.#keptReference = true;
  }

  report(error: unknown, where: string): void {
    this.#owner.report(error, where);
  }

  forget(stream: MuxStream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#opening.delete(stream);
    this.#waiters.delete(stream);
    this.#owner.onStreamsChanged(-1);
    this.#closeIfRetired();
  }

  #add(stream: MuxStream): void {
    this.#streams.set(stream.id, stream);
    this.#owner.onStreamsChanged(1);
  }

  // ---- time ----

  tick(nowMs: number): void {
    if (this.#closed) return;
    const movedBytes = this.#receivedBytes + this.bytesSent;
    this.#recentBytes = movedBytes - this.#movedBytes;
    this.#movedBytes = movedBytes;
    if (nowMs - this.#lastHeardMs >= MUX_LIMITS.CARRIER_DEAD_AFTER_MS) {
      this.#carrier.destroy(`nothing heard for ${MUX_LIMITS.CARRIER_DEAD_AFTER_MS / 1000} s`);
      return;
    }
    if (nowMs - this.#lastPingMs >= MUX_LIMITS.CARRIER_PING_INTERVAL_MS) this.#ping(nowMs);
    for (const stream of this.#opening) {
      // In the order of opening: the first young one ends the look.
      if (nowMs - stream.openedAtMs < MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS) break;
      const reason = { code: 'timeout', text: 'no answer to OPEN' } as const;
      this.#opening.delete(stream);
      this.sendReset(stream, reason);
      stream.handleReset(reason);
    }
    if (this.#worn(nowMs)) this.retire({ code: 'cancelled', text: 'rotated' });
  }

  #worn(nowMs: number): boolean {
    if (this.retiring) return false;
    return (
      nowMs - this.openedAtMs >= MUX_LIMITS.CARRIER_ROTATE_AFTER_MS ||
      this.bytesSent >= MUX_LIMITS.CARRIER_ROTATE_AFTER_BYTES ||
      this.#nextId >= LAST_ID
    );
  }

  #ping(nowMs: number): void {
    this.#lastPingMs = nowMs;
    const payload = new Uint8Array(PING_PAYLOAD_BYTES);
    writeUint32(payload, 4, nowMs >>> 0);
    this.#carrier.send(encodePing(FRAME.PING, payload));
  }

  // ---- the end ----

  /** Its own part of the work threw: it goes, and its streams with it; the session has others. */
  abandon(error: unknown, where: string): void {
    this.report(error, where);
    this.#carrier.destroy(BROKEN.text);
  }

  /** No new streams in either direction; the carrier goes when the last one has ended. */
  retire(reason: StreamReason): void {
    if (this.#closed) return;
    this.#carrier.send(encodeReason(FRAME.GO_AWAY, 0, reason));
    if (this.retiring) return;
    this.retiring = true;
    this.#owner.onGoAway(this, reason);
    this.#closeIfRetired();
  }

  close(reason: StreamReason): void {
    if (this.#closed) return;
    for (const stream of this.#streams.values()) this.sendReset(stream, reason);
    this.#carrier.end();
    this.#end(reason.text, reason, false);
  }

  #closeIfRetired(): void {
    if (this.retiring && this.#streams.size === 0 && !this.#closed && this.#owner.role === 'client')
      this.#carrier.end();
  }

  #violated(reason: string): void {
    if (this.#closed) return;
    this.#carrier.send(encodeReason(FRAME.GO_AWAY, 0, { code: 'protocol-violation', text: reason }));
    this.#carrier.end();
    this.#end(reason, { code: 'protocol-violation', text: reason }, true);
  }

  #end(text: string, reason: StreamReason, violation: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    const streams = [...this.#streams.values()];
    this.#waiters.clear();
    this.#opening.clear();
    for (const stream of streams) stream.handleReset(reason);
    this.#owner.onClosed(this, text, violation);
  }
}

const NONE: Buffer = Buffer.alloc(0);
