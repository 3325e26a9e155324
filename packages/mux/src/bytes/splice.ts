// Joins two byte pipes: bytes read from either end are written to the opposite end. Forwards back-pressure, half-close and resets in both
// directions, and counts bytes.

import type { StreamReason } from '@tunnel/protocol';
import type { ListNode } from '@tunnel/rules/collections';
import type { Guarded } from '../loop/guard.ts';
import { BROKEN, type ByteDuplex, type ByteReader } from './byte-duplex.ts';

export interface SpliceResult {
  readonly bytesAToB: number;
  readonly bytesBToA: number;
  /** How the joined connections ended. 'finished': both directions ended normally. 'reset': the connection was cut off. */
  readonly ended: 'finished' | 'reset';
  readonly reason?: StreamReason;
}

/**
 * abandon() reports an exception during the transfer. Both ends are reset afterwards, and onDone is called unless it was called already.
 */
export interface SpliceHandlers extends Guarded {
  /** Called for every chunk forwarded between the two ends, with its direction and size. */
  onBytes?(direction: 'a-to-b' | 'b-to-a', bytes: number): void;
  onDone(result: SpliceResult): void;
}

/** Byte counts of a running splice (two connections joined with each other). */
export interface Running {
  readonly bytesAToB: number;
  readonly bytesBToA: number;
  amongRunning: ListNode<Running> | null;
}

/** One direction of a splice: writes bytes read from `from` to `to`. */
class Direction implements ByteReader {
  readonly isFreeOnResume = true;
  bytes = 0;
  ended = false;
  readonly #splice: Splice;
  readonly #name: 'a-to-b' | 'b-to-a';
  readonly #from: ByteDuplex;
  readonly #to: ByteDuplex;

  constructor(splice: Splice, name: 'a-to-b' | 'b-to-a', from: ByteDuplex, to: ByteDuplex) {
    this.#splice = splice;
    this.#name = name;
    this.#from = from;
    this.#to = to;
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.bytes += end - start;
    this.#splice.handlers.onBytes?.(this.#name, end - start);
    return this.#to.write(bytes, start, end, borrowed);
  }

  /** Called when `from` can be written again: resumes reading the opposite direction. */
  onDrain(): void {
    this.#to.resume();
  }

  onEnd(): void {
    // A direction has ended only after the last byte was flushed. Otherwise a drain that waits for the splice would cut off queued bytes.
    this.#to.end(() => {
      this.ended = true;
      this.#splice.directionEnded();
    });
  }

  onReset(reason: StreamReason): void {
    this.#to.reset(reason);
    this.#splice.finish('reset', reason);
  }

  abandon(error: unknown, where: string): void {
    this.#splice.abandon(error, where);
  }

  resetSource(reason: StreamReason): void {
    this.#from.reset(reason);
  }
}

export class Splice implements Running {
  readonly handlers: SpliceHandlers;
  /** List node in the list of running splices that the splice's owner keeps. */
  amongRunning: ListNode<Running> | null = null;
  readonly #aToB: Direction;
  readonly #bToA: Direction;
  #done = false;

  constructor(a: ByteDuplex, b: ByteDuplex, handlers: SpliceHandlers) {
    this.handlers = handlers;
    this.#aToB = new Direction(this, 'a-to-b', a, b);
    this.#bToA = new Direction(this, 'b-to-a', b, a);
    a.read(this.#aToB);
    b.read(this.#bToA);
  }

  get bytesAToB(): number {
    return this.#aToB.bytes;
  }

  get bytesBToA(): number {
    return this.#bToA.bytes;
  }

  /** Resets both ends of the splice. */
  reset(reason: StreamReason): void {
    if (this.#done) return;
    this.#aToB.resetSource(reason);
    this.#bToA.resetSource(reason);
    this.finish('reset', reason);
  }

  /** Resets both ends of the splice after an exception. Works even after onDone, because the exception may come from onDone. */
  abandon(error: unknown, where: string): void {
    try {
      this.handlers.abandon(error, where);
    } finally {
      this.#aToB.resetSource(BROKEN);
      this.#bToA.resetSource(BROKEN);
      this.finish('reset', BROKEN);
    }
  }

  directionEnded(): void {
    if (this.#aToB.ended && this.#bToA.ended) this.finish('finished');
  }

  finish(ended: 'finished' | 'reset', reason?: StreamReason): void {
    if (this.#done) return;
    this.#done = true;
    this.handlers.onDone({
      bytesAToB: this.bytesAToB,
      bytesBToA: this.bytesBToA,
      ended,
      ...(reason === undefined ? {} : { reason }),
    });
  }
}

export const splice = (a: ByteDuplex, b: ByteDuplex, handlers: SpliceHandlers): Splice => new Splice(a, b, handlers);
