// A byte stream of a carrier: states, send and receive credit, and buffered bytes. The connection encodes frames; the stream enforces the
// rules.
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import type { ByteDuplex, ByteReader } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { type ReadBlock, readBuffers } from '../bytes/read-buffers.ts';
import { MUX_LIMITS } from '../limits.ts';
import type { ReceiveWindow } from './flow-control.ts';
import { FramedStream, type FramingConnection, type StreamAnswer } from './framed-stream.ts';

/** Functions of the carrying connection that a byte stream needs. */
export interface StreamConnection extends FramingConnection {
  readonly carrierTag: string;
  sendOpened(stream: MuxStream): ReceiveWindow;
  sendFin(stream: MuxStream): void;
  sendWindow(stream: MuxStream, window: ReceiveWindow): void;
  /** Sends a DATA frame. Returns true if the memory is free again, or false if borrowed memory is in use until carrierReady(). */
  sendData(stream: MuxStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Returns true if a frame of this size has to wait. carrierReady() is then called later. */
  mustWait(stream: MuxStream, bytes: number): boolean;
  /** Counts read buffers kept by slow readers: +1 when kept, -1 when free again. */
  pinned(delta: 1 | -1): void;
  /** Marks the memory of the current delivery as possibly still in use after the reader returns. */
  keptReference(): void;
}

export type OpenAnswer = StreamAnswer<MuxStream>;

interface Held {
  readonly bytes: Buffer;
  start: number;
  readonly end: number;
}

const CALLS = { opened: 'stream.opened', refused: 'stream.refused', reset: 'stream.reset' } as const;

export class MuxStream extends FramedStream<StreamConnection, ByteReader> implements ByteDuplex {
  // --- receiving ---
  #window: ReceiveWindow | null;
  /** Bytes passed to the stream's reader that the reader has not drained yet. */
  #unconsumedBytes = 0;
  #pinned = false;
  /** Read block that the stream's reader uses until the reader resumes. */
  #pinnedBlock: ReadBlock | null = null;
  #early: ByteQueue | null = null;
  #finReceived = false;
  // --- sending ---
  #creditBytes: number;
  /** Borrowed bytes that are not sent yet, or sent and still in use. */
  #held: Held | null = null;
  #inFlight = false;
  #queue: ByteQueue | null = null;
  #stopped = false;
  #endAsked: (() => void) | null = null;
  #finSent = false;

  constructor(connection: StreamConnection, id: number, openedAtMs: number, role: StreamRole) {
    super(connection, id, openedAtMs, role.kind === 'opener' ? role.answer : null);
    this.#window = role.kind === 'opener' ? role.window : null;
    this.#creditBytes = role.kind === 'opener' ? 0 : role.creditBytes;
  }

  /** True if the window has grown, so that the peer can send more at once than on a new stream. Granted credit cannot be revoked. */
  get hasGrown(): boolean {
    return (this.#window?.windowBytes ?? 0) > MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES;
  }

  /** Name of the stream's carrier, known to both ends. */
  get carrierTag(): string {
    return this.connection.carrierTag;
  }

  protected get calls(): typeof CALLS {
    return CALLS;
  }

  // ---- opening ----

  /** Accepts the stream that the peer opened, because the local service answered. */
  accept(): void {
    if (this.phase !== 'offered') return;
    this.phase = 'open';
    this.#window = this.connection.sendOpened(this);
  }

  /** Handles OPENED. Returns false if the stream was not waiting for an answer. */
  handleOpened(creditBytes: number): boolean {
    if (this.phase !== 'opening') return false;
    this.#creditBytes = creditBytes;
    this.opened();
    return true;
  }

  // ---- receiving ----

  read(reader: ByteReader): void {
    this.reader = reader;
    this.#window?.onNewReader();
    const early = this.#early;
    this.#early = null;
    while (early !== null && early.length > 0 && this.reader !== null) {
      const bytes = early.shift(early.length);
      this.#deliver(bytes, 0, bytes.length, false);
    }
    if (this.#finReceived) reader.onEnd();
  }

  /** Handles DATA. Returns false if the peer sent before OPENED, beyond its credit, or after FIN. */
  handleData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.phase !== 'open' || this.#window === null || this.#finReceived) return false;
    if (!this.#window.take(end - start)) return false;
    if (this.reader === null) {
      this.#early ??= new ByteQueue();
      this.#early.push(bytes, start, end);
      return true;
    }
    // Saved before the call: if another reader takes over meanwhile, the old reader is still the cause of an exception.
    const reader = this.reader;
    try {
      this.#deliver(bytes, start, end, borrowed);
    } catch (error) {
      // The stream's reader may have kept a reference to the received bytes before it threw.
      if (borrowed) this.connection.keptReference();
      this.abandon(reader, error, 'stream.data');
    }
    return true;
  }

  handleDatagram(): boolean {
    return false;
  }

  #deliver(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    const reader = this.reader;
    const mayBorrow = borrowed && this.#unconsumedBytes === 0;
    this.#unconsumedBytes += end - start;
    const drained = reader?.onData(bytes, start, end, mayBorrow) ?? true;
    if (drained) return this.#consumeAll();
    const isSame = this.phase !== 'closed' && this.reader === reader;
    if (mayBorrow && isSame) this.#pin(bytes, reader?.isFreeOnResume === true);
    // Applies even if the stream has ended meanwhile, because delivered bytes are still in use.
    else if (mayBorrow) this.connection.keptReference();
    // The new reader never got these bytes and will not drain them.
    if (!isSame && this.phase !== 'closed') this.resume();
  }

  resume(): void {
    if (this.#pinnedBlock !== null) readBuffers.unpin(this.#pinnedBlock);
    this.#unpin();
    this.#consumeAll();
  }

  #consumeAll(): void {
    const bytes = this.#unconsumedBytes;
    this.#unconsumedBytes = 0;
    if (this.phase === 'closed' || this.#finReceived || this.#window === null) return;
    if (this.#window.consume(bytes)) this.connection.sendWindow(this, this.#window);
  }

  #pin(bytes: Buffer, isFreeOnResume: boolean): void {
    this.#pinned = true;
    this.connection.pinned(1);
    this.#pinnedBlock = isFreeOnResume ? readBuffers.pin(bytes) : null;
    if (this.#pinnedBlock === null) this.connection.keptReference();
  }

  #unpin(): void {
    this.#pinnedBlock = null;
    if (!this.#pinned) return;
    this.#pinned = false;
    this.connection.pinned(-1);
  }

  handleFin(): boolean {
    if (this.phase !== 'open' || this.#finReceived) return false;
    this.#finReceived = true;
    const reader = this.reader;
    try {
      reader?.onEnd();
    } catch (error) {
      this.abandon(reader, error, 'stream.end');
    }
    this.#closeIfDone();
    return true;
  }

  // ---- sending ----

  handleCredit(bytes: number): boolean {
    if (this.phase === 'opening' || this.phase === 'closed') return false;
    this.#creditBytes += bytes;
    if (this.#creditBytes > WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES) return false;
    this.#goOn();
    return true;
  }

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.phase !== 'open' || this.#endAsked !== null) return true;
    if (this.#held === null && this.#queue === null && !this.#inFlight) {
      const sent = this.#sendSome(bytes, start, end, borrowed);
      if (sent === end) return this.#free();
      if (borrowed) this.#held = { bytes, start: sent, end };
      else this.#enqueue(bytes, sent, end);
    } else this.#enqueue(bytes, start, end);
    this.#stopped = true;
    return false;
  }

  /** Returns true if the stream's writer can continue, or false while its memory is still in use by the carrier. */
  #free(): boolean {
    if (!this.#inFlight) return true;
    this.#stopped = true;
    return false;
  }

  #enqueue(bytes: Buffer, start: number, end: number): void {
    this.#queue ??= new ByteQueue();
    this.#queue.push(bytes, start, end);
  }

  /** Sends as much as credit and carrier allow. Returns the position of the first unsent byte. */
  #sendSome(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    let at = start;
    while (at < end && this.#creditBytes > 0 && !this.#inFlight) {
      const stop = Math.min(end, at + Math.min(this.#creditBytes, WIRE_LIMITS.FRAME_DATA_MAX_BYTES));
      if (this.connection.mustWait(this, stop - at)) break;
      this.#creditBytes -= stop - at;
      this.#inFlight = !this.connection.sendData(this, bytes, at, stop, borrowed);
      at = stop;
    }
    return at;
  }

  carrierReady(): void {
    this.#inFlight = false;
    this.#goOn();
  }

  #goOn(): void {
    const reader = this.reader;
    try {
      this.#pump();
    } catch (error) {
      this.abandon(reader, error, 'stream.drain');
    }
  }

  #pump(): void {
    if (this.phase !== 'open' || this.#inFlight) return;
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
      this.reader?.onDrain();
    }
  }

  #pumpQueue(): boolean {
    const queue = this.#queue;
    if (queue === null) return true;
    while (queue.length > 0) {
      if (this.#creditBytes === 0 || this.connection.mustWait(this, 1)) return false;
      const bytes = queue.shift(Math.min(this.#creditBytes, WIRE_LIMITS.FRAME_DATA_MAX_BYTES));
      this.#creditBytes -= bytes.length;
      // The queue's memory has no head room, so the carrier cannot borrow it.
      this.connection.sendData(this, bytes, 0, bytes.length, false);
    }
    this.#queue = null;
    return true;
  }

  end(onFlushed?: () => void): void {
    if (this.phase !== 'open' || this.#endAsked !== null) return;
    this.#endAsked = onFlushed ?? NOTHING;
    if (this.#held === null && this.#queue === null && !this.#inFlight) this.#sendFin();
  }

  #sendFin(): void {
    if (this.#finSent) return;
    this.#finSent = true;
    this.connection.sendFin(this);
    const flushed = this.#endAsked;
    this.#closeIfDone();
    flushed?.();
  }

  // ---- the end ----

  /** Byte streams ignore that their carrier retires: they stay on the carrier they were opened on. */
  handleRetiring(): void {}

  /** Resets a stream when neither end asked for it. Notifies the peer, and the local reader as if the peer had sent the reset. */
  cut(reason: StreamReason): void {
    if (this.phase !== 'open') return this.reset(reason);
    this.connection.sendReset(this, reason);
    this.handleReset(reason);
  }

  #closeIfDone(): void {
    if (this.#finSent && this.#finReceived) this.close();
  }

  protected close(): void {
    if (this.phase === 'closed') return;
    this.phase = 'closed';
    this.#window?.close();
    this.#window = null;
    this.#unpin();
    this.#held = null;
    this.#queue = null;
    this.#early = null;
    this.connection.forget(this);
  }
}

export type StreamRole =
  | { readonly kind: 'opener'; readonly answer: OpenAnswer; readonly window: ReceiveWindow }
  | { readonly kind: 'accepter'; readonly creditBytes: number };

const NOTHING = (): void => {};
