// ByteDuplex: the end of a bidirectional byte pipe, either a socket or a stream of a session. `splice` joins two ends. The interface covers
// back-pressure, half-close and memory ownership.
import type { Socket } from 'node:net';
import type { StreamReason } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';

/** Reset reason sent to the peer of a stream after an internal error on this side. */
export const BROKEN: StreamReason = { code: 'cancelled', text: 'an internal error' };

/** Free bytes that every reader leaves in front of the data, so that a frame header can be written there without a copy. */
export const HEAD_ROOM_BYTES = 8;

/**
 * Receives the bytes of a ByteDuplex. If a method throws, abandon() is called: the reader must then close its ends, and send an error
 * response first where possible.
 */
export interface ByteReader extends Guarded {
  /**
   * Called with received bytes[start, end). If `borrowed` is true, the reader can keep a reference until it has drained, and returns false.
   * Otherwise the reader must copy all bytes it cannot process at once. Returns false to pause reading until resume().
   */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** True if the reader calls resume() only after all kept bytes were written, and is never replaced. The memory can then be reused. */
  readonly isFreeOnResume?: boolean;
  /** Called when written bytes have been flushed: writing can continue, and borrowed memory is free again. */
  onDrain(): void;
  /** Called when the other side has finished sending. The sending direction stays open. */
  onEnd(): void;
  /** Called when the connection has ended in both directions. The reader gets no further call. */
  onReset(reason: StreamReason): void;
}

export interface ByteDuplex {
  /** Attaches the reader of the connection and starts reading. Can be called only once. */
  read(reader: ByteReader): void;
  /**
   * Writes bytes[start, end). Returns false if bytes are still pending; wait for onDrain then, and leave borrowed memory untouched until
   * that call.
   */
  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Resumes reading from the connection after the reader's onData returned false. */
  resume(): void;
  /** Closes the sending direction after all written bytes were flushed, then calls `onFlushed` (never after a reset). */
  end(onFlushed?: () => void): void;
  /** Closes both directions at once; the other side gets a reset. Idempotent. The local reader is not notified. */
  reset(reason: StreamReason): void;
}

/** ByteDuplex of a socket. Also exposes the size of the write queue, the peer's state, and release() for hand-over to another owner. */
export interface SocketEnd extends ByteDuplex {
  /** Bytes written to the connection that the kernel has not accepted yet. */
  readonly queuedBytes: number;
  /** Total bytes accepted by the kernel so far. If the value does not change while bytes are queued, the peer is not reading. */
  readonly takenBytes: number;
  /** True if the peer has disconnected. Needed while reading is paused, because no event reports the disconnect then. */
  readonly hasLostPeer: boolean;
  /** Called when the reader has stopped and will not drain. Memory of delivered bytes is never reused; later reads use other memory. */
  abandonReadBuffer(): void;
  /**
   * Detaches from a socket after the sending direction ended and the kernel accepted all bytes. The kernel keeps delivering the bytes; a
   * reset would discard bytes that the peer has not read yet. Later data from the peer is answered with a reset.
   */
  detach(): void;
  /**
   * Hands the socket over to another protocol, which reads and writes from now on. Must not be called within onData() or while bytes are
   * queued. Returns null if the socket has closed already.
   */
  release(): Socket | null;
}

/** Owner of a socket that is notified when the socket ends, regardless of the current reader. */
export interface SocketHolder {
  /** Called once, after the file descriptor of the owner's socket was closed. */
  onClosed(): void;
  /** Called after a native handle was released, with the net.Socket that continues the connection. */
  onBecame(socket: Socket): void;
}
