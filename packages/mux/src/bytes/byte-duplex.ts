// What `splice` joins: one end of a two-way byte pipe, be it a socket or a stream of a session.
// Back-pressure and half-close are part of the interface, and so is who owns the memory.
import type { Socket } from 'node:net';
import type { StreamReason } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';

/** What the other side of a stream is told when something of ours threw. */
export const BROKEN: StreamReason = { code: 'cancelled', text: 'an internal error' };

/** Free bytes that every reader leaves in front of the bytes it hands out, so that a frame header fits there without a copy. */
export const HEAD_ROOM_BYTES = 8;

/** Whoever throws in one of these is abandoned: it ends its ends itself, and answers before where it can. */
export interface ByteReader extends Guarded {
  /**
   * bytes[start, end) have come. With `borrowed` the reader may keep a reference until it drains, and says so by returning false;
   * without it, it copies what it cannot place at once. false: stop, and wait for resume().
   */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** It resumes when all that it kept has left, never before, and nobody takes its place: the memory is used again. */
  readonly isFreeOnResume?: boolean;
  /** What was written has left: writing may go on, and borrowed memory is free again. */
  onDrain(): void;
  /** The other side has finished sending; the own direction stays open. */
  onEnd(): void;
  /** Both directions are gone. Nothing follows. */
  onReset(reason: StreamReason): void;
}

export interface ByteDuplex {
  /** Attaches the reader and starts the flow. Once. */
  read(reader: ByteReader): void;
  /** Same rule as onData: false means "not all has left; wait for onDrain", and borrowed memory stays untouched until then. */
  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** After a false from onData: the reader is ready again. */
  resume(): void;
  /** Half-close: all that was written goes out first, then `onFlushed` is called (never after a reset). */
  end(onFlushed?: () => void): void;
  /** Both directions at once; the other side sees a reset. Idempotent; the own reader is not told. */
  reset(reason: StreamReason): void;
}

/** The end of a socket: what waits in it, how far its peer has come, and how it is given away. */
export interface SocketEnd extends ByteDuplex {
  /** Bytes written here that the kernel has not taken yet. */
  readonly queuedBytes: number;
  /** What the kernel has taken so far, bit by bit: while bytes are queued and this stands still, so does the peer. */
  readonly takenBytes: number;
  /** Asked of a peer that is not read: of that one nobody else would tell. */
  readonly hasLostPeer: boolean;
  /** The reader stopped, or does so now, and will not drain: who uses what was read may do so for ever; the rest is read into other memory. */
  leaveMemory(): void;
  /**
   * Our direction has ended, and the kernel has all of it: it goes on delivering that without us. A reset would take it away from a peer that has
   * not read so far. What the peer sends from here on is answered by a reset.
   */
  letGo(): void;
  /**
   * Another protocol begins: somebody else reads and writes the socket from here on. Not within onData(), and not while bytes wait to be written.
   * null: it is over already.
   */
  release(): Socket | null;
}

/** Who has to know of the end of a socket, whoever reads it. */
export interface SocketHolder {
  /** Its descriptor is given back. Once. */
  onClosed(): void;
  /** It was released, and is this from here on. */
  onBecame(socket: Socket): void;
}
