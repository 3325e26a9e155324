// One stream of a carrier: its life, its two credits, and what waits in between. The connection owns the frames, the stream the rules.
import type { ListNode } from '@tunnel/core';
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { BROKEN, type ByteDuplex, type ByteReader } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { type ReadBlock, readBuffers } from '../bytes/read-buffers.ts';
import { MUX_LIMITS } from '../limits.ts';
import type { Guarded } from '../loop/guard.ts';
import type { ReceiveWindow } from './flow-control.ts';
import type { FramedStream } from './framed-stream.ts';
import type { StreamConnection } from './stream-connection.ts';

export type StreamState = 'opening' | 'offered' | 'open' | 'closed';

export interface OpenAnswer extends Guarded {
  onOpened(stream: MuxStream): void;
  onRefused(reason: StreamReason): void;
}

interface Held {
  readonly bytes: Buffer;
  start: number;
  readonly end: number;
}

export class MuxStream implements ByteDuplex, FramedStream {
  readonly id: number;
  readonly openedAtMs: number;
  tunnelId = '';
  unanswered: ListNode<FramedStream> | null = null;
  readonly #connection: StreamConnection;
  #state: StreamState;
  #answer: OpenAnswer | null;
  #reader: ByteReader | null = null;
  // --- receiving ---
  #window: ReceiveWindow | null;
  /** Handed to a reader that has not drained: not yet consumed. */
  #unconsumedBytes = 0;
  #pinned = false;
  /** What the reader uses a part of until it resumes. */
  #pinnedBlock: ReadBlock | null = null;
  #early: ByteQueue | null = null;
  #finReceived = false;
  // --- sending ---
  #creditBytes: number;
  /** Borrowed by the writer and not yet sent, or sent and still in use. */
  #held: Held | null = null;
  #inFlight = false;
  #queue: ByteQueue | null = null;
  #stopped = false;
  #endAsked: (() => void) | null = null;
  #finSent = false;

  constructor(connection: StreamConnection, id: number, openedAtMs: number, role: StreamRole) {
    this.#connection = connection;
    this.id = id;
    this.openedAtMs = openedAtMs;
    this.#state = role.kind === 'opener' ? 'opening' : 'offered';
    this.#answer = role.kind === 'opener' ? role.answer : null;
    this.#window = role.kind === 'opener' ? role.window : null;
    this.#creditBytes = role.kind === 'opener' ? 0 : role.creditBytes;
  }

  /** Its carrier is about to go: whoever keeps a stream for later use lets go of this one. */
  get isRetiring(): boolean {
    return this.#connection.retiring;
  }

  /** It moved much, so that its peer may send more at once than on a fresh one; what was promised cannot be taken back. */
  get hasGrown(): boolean {
    return (this.#window?.windowBytes ?? 0) > MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES;
  }

  /** What both ends call its carrier. */
  get carrierTag(): string {
    return this.#connection.carrierTag;
  }

  get state(): StreamState {
    return this.#state;
  }

  // ---- opening ----

  /** The accepting side: the local service answered. */
  accept(): void {
    if (this.#state !== 'offered') return;
    this.#state = 'open';
    this.#window = this.#connection.sendOpened(this);
  }

  refuse(reason: StreamReason): void {
    if (this.#state !== 'offered') return;
    this.#connection.sendRefused(this, reason);
    this.#close();
  }

  /** From the connection: the peer's answer to our OPEN. false: it was not the time for one. */
  handleOpened(creditBytes: number): boolean {
    if (this.#state !== 'opening') return false;
    this.#state = 'open';
    this.#creditBytes = creditBytes;
    const answer = this.#answer;
    this.#answer = null;
    try {
      answer?.onOpened(this);
    } catch (error) {
      this.#abandon(answer, error, 'stream.opened');
    }
    return true;
  }

  handleRefused(reason: StreamReason): boolean {
    if (this.#state !== 'opening') return false;
    this.#close();
    const answer = this.#answer;
    this.#answer = null;
    try {
      answer?.onRefused(reason);
    } catch (error) {
      this.#abandon(answer, error, 'stream.refused');
    }
    return true;
  }

  /** What threw costs this stream, never its carrier. The reader is told first: it knows what can still be said, and to whom. */
  #abandon(owner: Guarded | null, error: unknown, where: string): void {
    try {
      if (owner === null) this.#connection.report(error, where);
      else owner.abandon(error, where);
    } catch (second) {
      this.#connection.report(second, where);
    }
    this.reset(BROKEN);
  }

  // ---- receiving ----

  read(reader: ByteReader): void {
    this.#reader = reader;
    this.#window?.onNewReader();
    const early = this.#early;
    this.#early = null;
    while (early !== null && early.length > 0 && this.#reader !== null) {
      const bytes = early.shift(early.length);
      this.#deliver(bytes, 0, bytes.length, false);
    }
    if (this.#finReceived) reader.onEnd();
  }

  /** From the connection. Returns false when the peer sent before it accepted, more than its credit, or after its FIN. */
  handleData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#state !== 'open' || this.#window === null || this.#finReceived) return false;
    if (!this.#window.take(end - start)) return false;
    if (this.#reader === null) {
      this.#early ??= new ByteQueue();
      this.#early.push(bytes, start, end);
      return true;
    }
    // As it is now: whoever it belongs to afterwards has done nothing wrong.
    const reader = this.#reader;
    try {
      this.#deliver(bytes, start, end, borrowed);
    } catch (error) {
      // Whoever threw may have kept what it was given.
      if (borrowed) this.#connection.keptReference();
      this.#abandon(reader, error, 'stream.data');
    }
    return true;
  }

  handleDatagram(): boolean {
    return false;
  }

  #deliver(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    const reader = this.#reader;
    const mayBorrow = borrowed && this.#unconsumedBytes === 0;
    this.#unconsumedBytes += end - start;
    const drained = reader?.onData(bytes, start, end, mayBorrow) ?? true;
    if (drained) return this.#consumeAll();
    const isSame = this.#state !== 'closed' && this.#reader === reader;
    if (mayBorrow && isSame) this.#pin(bytes, reader?.isFreeOnResume === true);
    // Also when the stream has ended meanwhile: what was handed out is still in use.
    else if (mayBorrow) this.#connection.keptReference();
    // Who has it now got none of these bytes, and will not say that they are drained.
    if (!isSame && this.#state !== 'closed') this.resume();
  }

  resume(): void {
    if (this.#pinnedBlock !== null) readBuffers.unpin(this.#pinnedBlock);
    this.#unpin();
    this.#consumeAll();
  }

  #consumeAll(): void {
    const bytes = this.#unconsumedBytes;
    this.#unconsumedBytes = 0;
    if (this.#state === 'closed' || this.#finReceived || this.#window === null) return;
    if (this.#window.consume(bytes)) this.#connection.sendWindow(this, this.#window);
  }

  #pin(bytes: Buffer, isFreeOnResume: boolean): void {
    this.#pinned = true;
    this.#connection.pinned(1);
    this.#pinnedBlock = isFreeOnResume ? readBuffers.pin(bytes) : null;
    if (this.#pinnedBlock === null) this.#connection.keptReference();
  }

  #unpin(): void {
    this.#pinnedBlock = null;
    if (!this.#pinned) return;
    this.#pinned = false;
    this.#connection.pinned(-1);
  }

  handleFin(): boolean {
    if (this.#state !== 'open' || this.#finReceived) return false;
    this.#finReceived = true;
    const reader = this.#reader;
    try {
      reader?.onEnd();
    } catch (error) {
      this.#abandon(reader, error, 'stream.end');
    }
    this.#closeIfDone();
    return true;
  }

  handleReset(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    const answer = this.#answer;
    const reader = this.#reader;
    this.#answer = null;
    this.#close();
    try {
      if (answer !== null) answer.onRefused(reason);
      else reader?.onReset(reason);
    } catch (error) {
      this.#abandon(answer ?? reader, error, answer === null ? 'stream.reset' : 'stream.refused');
    }
  }

  // ---- sending ----

  handleCredit(bytes: number): boolean {
    if (this.#state === 'opening' || this.#state === 'closed') return false;
    this.#creditBytes += bytes;
    if (this.#creditBytes > WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES) return false;
    this.#goOn();
    return true;
  }

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#state !== 'open' || this.#endAsked !== null) return true;
    if (this.#held === null && this.#queue === null && !this.#inFlight) {
      const sent = this.#sendSome(bytes, start, end, borrowed);
      if (sent === end) return this.#free();
      if (borrowed) this.#held = { bytes, start: sent, end };
      else this.#enqueue(bytes, sent, end);
    } else this.#enqueue(bytes, start, end);
    this.#stopped = true;
    return false;
  }

  /** All was sent: the writer may go on, unless its memory is still in use below. */
  #free(): boolean {
    if (!this.#inFlight) return true;
    this.#stopped = true;
    return false;
  }

  #enqueue(bytes: Buffer, start: number, end: number): void {
    this.#queue ??= new ByteQueue();
    this.#queue.push(bytes, start, end);
  }

  /** Sends as much as credit and carrier allow; returns where it stopped. */
  #sendSome(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    let at = start;
    while (at < end && this.#creditBytes > 0 && !this.#inFlight) {
      const stop = Math.min(end, at + Math.min(this.#creditBytes, WIRE_LIMITS.FRAME_DATA_MAX_BYTES));
      if (this.#connection.mustWait(this, stop - at)) break;
      this.#creditBytes -= stop - at;
      this.#inFlight = !this.#connection.sendData(this, bytes, at, stop, borrowed);
      at = stop;
    }
    return at;
  }

  carrierReady(): void {
    this.#inFlight = false;
    this.#goOn();
  }

  #goOn(): void {
    const reader = this.#reader;
    try {
      this.#pump();
    } catch (error) {
      this.#abandon(reader, error, 'stream.drain');
    }
  }

  #pump(): void {
    if (this.#state !== 'open' || this.#inFlight) return;
    const held = this.#held;
    if (held !== null) {
      held.start = this.#sendSome(held.bytes, held.start, held.end, true);
      if (held.start < held.end || this.#inFlight) return;
      this.#held = null;
    }
    if (!this.#pumpQueue()) return;
    if (this.#endAsked !== null) this.#sendFin();
    else if (this.#stopped) {
      this.#stopped = false;
      this.#reader?.onDrain();
    }
  }

  #pumpQueue(): boolean {
    const queue = this.#queue;
    if (queue === null) return true;
    while (queue.length > 0) {
      if (this.#creditBytes === 0 || this.#connection.mustWait(this, 1)) return false;
      const bytes = queue.shift(Math.min(this.#creditBytes, WIRE_LIMITS.FRAME_DATA_MAX_BYTES));
      this.#creditBytes -= bytes.length;
      // Without head room in front of it the queue's memory cannot be borrowed.
      this.#connection.sendData(this, bytes, 0, bytes.length, false);
    }
    this.#queue = null;
    return true;
  }

  end(onFlushed?: () => void): void {
    if (this.#state !== 'open' || this.#endAsked !== null) return;
    this.#endAsked = onFlushed ?? NOTHING;
    if (this.#held === null && this.#queue === null && !this.#inFlight) this.#sendFin();
  }

  #sendFin(): void {
    if (this.#finSent) return;
    this.#finSent = true;
    this.#connection.sendFin(this);
    const flushed = this.#endAsked;
    this.#closeIfDone();
    flushed?.();
  }

  // ---- the end ----

  /** Bytes stay where they began. */
  handleRetiring(): void {}

  reset(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'offered') {
      this.refuse(reason);
      return;
    }
    this.#answer = null;
    this.#connection.sendReset(this, reason);
    this.#close();
  }

  /** A reset that neither end has asked for: the peer is told, and the reader as if it came from there. */
  cut(reason: StreamReason): void {
    if (this.#state !== 'open') return this.reset(reason);
    this.#connection.sendReset(this, reason);
    this.handleReset(reason);
  }

  #closeIfDone(): void {
    if (this.#finSent && this.#finReceived) this.#close();
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#window?.close();
    this.#window = null;
    this.#unpin();
    this.#held = null;
    this.#queue = null;
    this.#early = null;
    this.#connection.forget(this);
  }
}

export type StreamRole =
  | { readonly kind: 'opener'; readonly answer: OpenAnswer; readonly window: ReceiveWindow }
  | { readonly kind: 'accepter'; readonly creditBytes: number };

const NOTHING = (): void => {};
