// What `splice` joins: one end of a two-way byte pipe, be it a socket or a stream of a session.
// Back-pressure and half-close are part of the interface, and so is who owns the memory.
import type { StreamReason } from '@tunnel/protocol';
import type { Guarded } from './guard.ts';

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
