// Carrier: a connection that transports frames, as bytes in and batches out. Edge and client use two kinds, plain and TLS 1.3; two clients
// use a third kind (packages/peer).
import type * as net from 'node:net';
import { BROKEN } from '../bytes/byte-duplex.ts';
import { MUX_LIMITS } from '../limits.ts';
import { type Guarded, guard, type ReportInternalError } from '../loop/guard.ts';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import type { ReadPath } from '../native/node-internals.ts';
import { isSecured } from '../native/tls-handle.ts';
import { CarrierReader } from './carrier-reader.ts';
import { CarrierWriter } from './carrier-writer.ts';

/**
 * Bytes the peer must read per CARRIER_LINGER_MS to keep a closed carrier lingering. Without the limit, a peer that reads a byte at a time
 * would hold the queue for days.
 */
export const CARRIER_LINGER_BYTES = 64 * 1024;

export interface CarrierReceiver {
  /** Called with received bytes. If `borrowed` is true, the receiver can keep references to the memory, and returns true if it does. */
  onBytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Called when the carrier's send queue is empty: waiting streams can send again. */
  onReady(): void;
  /** Called once, when the carrier has closed for any reason. */
  onClosed(reason: string): void;
  readonly report: ReportInternalError;
  /** Clock for the linger timeout: a carrier gives up on a peer that does not close its side. */
  readonly clock: MuxClock;
}

export interface Carrier {
  readonly kind: 'plain' | 'tls' | 'sealed';
  readonly readPath: ReadPath;
  readonly bytesSent: number;
  readonly queuedBytes: number;
  /** Starts reading frames from the carrier. Can be called only once. */
  start(receiver: CarrierReceiver): void;
  /** Copies the first `length` bytes of a small frame (by default all bytes) and sends the frame in the batch of this turn. */
  send(frame: Uint8Array, length?: number): void;
  /** Sends a DATA frame on the carrier. CarrierWriter describes who owns the memory of the payload. */
  sendData(streamId: number, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Copies a DATAGRAM frame into the batch of this turn. Returns false if the datagram was dropped because the queue is full. */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /** Returns true if a DATA frame of this size has to wait for onReady. */
  isFull(bytes: number): boolean;
  /** Sends all queued frames, then closes the carrier. */
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

  constructor(socket: net.Socket, head: Buffer | undefined) {
    this.kind = isSecured(socket) ? 'tls' : 'plain';
    socket.setNoDelay(true);
    socket.setTimeout(0);
    this.#reader = new CarrierReader(socket, this.kind, head, this);
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
      // The peer closed the connection before start() was called. onClosed is never called synchronously.
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

  /** Whether the carrier sends further frames. False after end(): a late PONG after the end would break off frames still in transit. */
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

  /** Waits for the peer to close its side. Closes the carrier if the peer neither closes nor reads enough of the queued bytes. */
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
      // Repeated for the case that the first onClosed call threw. A receiver that already knows ignores the second call.
      this.#receiver?.onClosed(BROKEN.text);
    }
  }

  #close(reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#linger?.cancel();
    // Bytes received together with the end are still valid. Delivering them can call #close again.
    this.#reader.finish();
    this.#closed = reason;
    this.#writer.close();
    this.#socket.destroy();
    this.#receiver?.onClosed(reason);
  }
}

/** Creates a carrier on a socket after the HTTP upgrade. `head` holds bytes received behind the upgrade request. */
export const createCarrier = (socket: net.Socket, head?: Buffer): Carrier => new SocketCarrier(socket, head);
