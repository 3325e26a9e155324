// One connection that carries frames, below them: bytes in, batches out. Two kinds between edge and client, plain and TLS 1.3; a third
// between two clients (packages/peer).
import type * as net from 'node:net';
import { BROKEN } from '../bytes/byte-duplex.ts';
import { MUX_LIMITS } from '../limits.ts';
import { type Guarded, guard, type ReportInternalError } from '../loop/guard.ts';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import type { ReadPath } from '../native/node-internals.ts';
import { isSecured } from '../native/tls-handle.ts';
import { CarrierReader } from './carrier-reader.ts';
import { CarrierWriter } from './carrier-writer.ts';

/** a carrier that we closed lingers on while the peer reads at least this much in CARRIER_LINGER_MS: a peer that reads a byte at a time would hold the queue for days */
export const CARRIER_LINGER_BYTES = 64 * 1024;

export interface CarrierReceiver {
  /** Bytes have come. With `borrowed` the memory may be kept by reference: true says that some of it is. */
  onBytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** The send queue is empty: whoever waited may go on. */
  onReady(): void;
  /** Over, for whatever reason. Called once. */
  onClosed(reason: string): void;
  readonly report: ReportInternalError;
  /** By which a carrier gives up a peer that does not answer its end. */
  readonly clock: MuxClock;
}

export interface Carrier {
  readonly kind: 'plain' | 'tls' | 'sealed';
  readonly readPath: ReadPath;
  readonly bytesSent: number;
  readonly queuedBytes: number;
  /** Starts the flow. Once. */
  start(receiver: CarrierReceiver): void;
  /** A whole small frame, the first `length` bytes (all, unless told), copied and sent with the others of this turn. */
  send(frame: Uint8Array, length?: number): void;
  /** One DATA frame. See CarrierWriter for who owns the memory. */
  sendData(streamId: number, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** One DATAGRAM frame, copied and sent with the others of this turn. false: too much waits already, it is dropped. */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /** Whether a DATA frame of this size has to wait for onReady. */
  isFull(bytes: number): boolean;
  /** Sends what waits, then closes. */
  end(): void;
  destroy(reason: string): void;
}

class SocketCarrier implements Carrier, Guarded {
  readonly kind: 'plain' | 'tls';
  readonly #socket: net.Socket;
  readonly #reader: CarrierReader;
  readonly #writer: CarrierWriter;
  #receiver: CarrierReceiver | null = null;
  #linger: MuxTimer | null = null;
  #ended = false;
  #closing = false;
  #closed: string | null = null;

  constructor(given: net.Socket, head: Buffer | undefined) {
    this.kind = isSecured(given) ? 'tls' : 'plain';
    given.setNoDelay(true);
    given.setTimeout(0);
    this.#reader = new CarrierReader(given, this.kind, head, this);
    this.#socket = this.#reader.socket;
    this.#writer = new CarrierWriter(this.#socket, {
      onReady: () => this.#receiver?.onReady(),
      onStuck: (bytes) => this.destroy(`${bytes} bytes queued, and the peer does not read`),
      abandon: (error, where) => this.abandon(error, where),
    });
    guard.listen(this.#socket, 'error', this, 'carrier', (error: NodeJS.ErrnoException) =>
      this.#close(error.code ?? error.message),
    );
    guard.listen(this.#socket, 'end', this, 'carrier', () => this.#close('closed by the peer'));
    guard.listen(this.#socket, 'close', this, 'carrier', () => this.#close('closed'));
  }

  get readPath(): ReadPath {
    return this.#reader.readPath;
  }

  get bytesSent(): number {
    return this.#writer.bytesSent;
  }

  get queuedBytes(): number {
    return this.#writer.queuedBytes;
  }

  start(receiver: CarrierReceiver): void {
    this.#receiver = receiver;
    if (this.#closed !== null) {
      // The peer was quicker than the owner; it is told in a turn of its own, as always.
      setImmediate(() => {
        try {
          receiver.onClosed(this.#closed ?? '');
        } catch (error) {
          this.abandon(error, 'carrier.close');
        }
      });
      return;
    }
    this.#reader.start((bytes, start, end, borrowed) => receiver.onBytes(bytes, start, end, borrowed));
  }

  /** Behind the end nothing goes: an answer to a ping that came late would break off what is still on its way. */
  get #takesFrames(): boolean {
    return !this.#ended && this.#closed === null;
  }

  send(frame: Uint8Array, length = frame.length): void {
    if (this.#takesFrames) this.#writer.send(frame, length);
  }

  sendData(streamId: number, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    return !this.#takesFrames || this.#writer.sendData(streamId, bytes, start, end, borrowed);
  }

  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    return this.#takesFrames && this.#writer.sendDatagram(streamId, bytes, start, end);
  }

  isFull(bytes: number): boolean {
    return this.#writer.isFull(bytes);
  }

  end(): void {
    if (!this.#takesFrames) return;
    if (this.#receiver === null) return this.#close('closed');
    this.#ended = true;
    this.#writer.end();
    this.#lingerWith(this.#receiver.clock, this.#writer.queuedBytes);
  }

  /** The peer answers with its own end. A peer that does not, and hardly takes anything of the bytes that wait, is left behind. */
  #lingerWith(clock: MuxClock, queuedBytes: number): void {
    this.#linger = clock.setTimeout(() => {
      const taken = queuedBytes - this.#writer.queuedBytes;
      if (taken >= CARRIER_LINGER_BYTES) this.#lingerWith(clock, this.#writer.queuedBytes);
      else this.#closeLate();
    }, MUX_LIMITS.CARRIER_LINGER_MS);
  }

  #closeLate(): void {
    try {
      this.#close('closed');
    } catch (error) {
      this.abandon(error, 'carrier.close');
    }
  }

  destroy(reason: string): void {
    this.#close(reason);
  }

  abandon(error: unknown, where: string): void {
    try {
      this.#receiver?.report(error, where);
      this.#close(BROKEN.text);
    } finally {
      this.#socket.destroy();
      // Once more, where telling it was what threw: whoever knows already takes no notice.
      this.#receiver?.onClosed(BROKEN.text);
    }
  }

  #close(reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#linger?.cancel();
    // What came with the end is still good; handing it on may lead back here.
    this.#reader.finish();
    this.#closed = reason;
    this.#writer.close();
    this.#socket.destroy();
    this.#receiver?.onClosed(reason);
  }
}

/** A socket after the HTTP upgrade; `head` are the bytes that came behind it. */
export const createCarrier = (socket: net.Socket, head?: Buffer): Carrier => new SocketCarrier(socket, head);
