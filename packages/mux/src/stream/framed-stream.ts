// Base class of byte streams and datagram streams, from OPEN to the end. A carrier passes frames to the handle* methods, which return false
// for a frame that is not allowed in the stream's state (a protocol violation).
import type { StreamReason } from '@tunnel/protocol';
import type { ListNode } from '@tunnel/rules/collections';
import { BROKEN, type ByteReader } from '../bytes/byte-duplex.ts';
import type { Guarded, ReportInternalError } from '../loop/guard.ts';

export type StreamState = 'opening' | 'offered' | 'open' | 'closed';

/** Functions of the carrying connection that streams of every kind need. */
export interface FramingConnection {
  /** True if the carrying connection accepts no new streams. Existing streams finish. */
  readonly retiring: boolean;
  sendRefused(stream: FramedStream, reason: StreamReason): void;
  sendReset(stream: FramedStream, reason: StreamReason): void;
  forget(stream: FramedStream): void;
  /** Reports errors of a stream that has no reader yet, or with a reader that failed to abandon the stream. */
  readonly report: ReportInternalError;
}

/** Receives the peer's answer to the OPEN frame of a stream. */
export interface StreamAnswer<Stream> extends Guarded {
  onOpened(stream: Stream): void;
  onRefused(reason: StreamReason): void;
}

type StreamReader = Pick<ByteReader, 'onReset' | 'abandon'>;

/** Names of guarded callbacks in error reports, for one kind of stream. */
type GuardedCalls = Readonly<Record<'opened' | 'refused' | 'reset', string>>;

export abstract class FramedStream<
  Connection extends FramingConnection = FramingConnection,
  Reader extends StreamReader = StreamReader,
> {
  readonly id: number;
  readonly openedAtMs: number;
  /** Tunnel for which this side opened the stream. Empty for streams opened by the peer. */
  tunnelId = '';
  /** List node of this stream among streams that the peer has not answered yet. */
  unanswered: ListNode<FramedStream> | null = null;
  protected readonly connection: Connection;
  protected phase: StreamState;
  protected reader: Reader | null = null;
  #answer: StreamAnswer<FramedStream> | null;

  /** Creates a stream. If `answer` is null, the peer opened the stream and waits for our answer. */
  constructor(connection: Connection, id: number, openedAtMs: number, answer: StreamAnswer<FramedStream> | null) {
    this.connection = connection;
    this.id = id;
    this.openedAtMs = openedAtMs;
    this.phase = answer === null ? 'offered' : 'opening';
    this.#answer = answer;
  }

  get state(): StreamState {
    return this.phase;
  }

  /** True if the carrier is about to close. Pools must not keep the stream for later use. */
  get isRetiring(): boolean {
    return this.connection.retiring;
  }

  protected abstract readonly calls: GuardedCalls;
  abstract handleOpened(creditBytes: number): boolean;
  abstract handleData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  abstract handleDatagram(bytes: Buffer, start: number, end: number): boolean;
  abstract handleCredit(bytes: number): boolean;
  abstract handleFin(): boolean;
  /** Called when the carrier is being replaced while the session continues. A stream that can move to another carrier does so. */
  abstract handleRetiring(): void;
  /** Called when the carrier has flushed its send queue, so that the stream can send again. */
  abstract carrierReady(): void;
  /** Frees the resources of this stream, which is not closed yet. */
  protected abstract close(): void;

  // ---- opening ----

  /** Rejects the stream that the peer opened, because the local service did not answer. */
  refuse(reason: StreamReason): void {
    if (this.phase !== 'offered') return;
    this.connection.sendRefused(this, reason);
    this.close();
  }

  /** Called when the peer has accepted the stream that we opened. */
  protected opened(): void {
    this.phase = 'open';
    const answer = this.#answer;
    this.#answer = null;
    try {
      answer?.onOpened(this);
    } catch (error) {
      this.abandon(answer, error, this.calls.opened);
    }
  }

  handleRefused(reason: StreamReason): boolean {
    if (this.phase !== 'opening') return false;
    this.handleReset(reason);
    return true;
  }

  // ---- the end ----

  /** Closes both directions at once; the other side gets a reset. Idempotent. The local reader is not notified. */
  reset(reason: StreamReason): void {
    if (this.phase === 'offered') this.refuse(reason);
    if (this.phase === 'closed') return;
    this.#answer = null;
    this.connection.sendReset(this, reason);
    this.close();
  }

  /** Called when the peer, the carrier or a timeout has ended both directions. */
  handleReset(reason: StreamReason): void {
    if (this.phase === 'closed') return;
    const answer = this.#answer;
    const reader = this.reader;
    this.#answer = null;
    this.close();
    try {
      if (answer !== null) answer.onRefused(reason);
      else reader?.onReset(reason);
    } catch (error) {
      this.abandon(answer ?? reader, error, answer === null ? this.calls.reset : this.calls.refused);
    }
  }

  /**
   * Ends this stream after an exception; the carrier stays open. The reader is called first, because it may still send an error response.
   */
  protected abandon(owner: Guarded | null, error: unknown, where: string): void {
    try {
      if (owner === null) this.connection.report(error, where);
      else owner.abandon(error, where);
    } catch (second) {
      this.connection.report(second, where);
    }
    this.reset(BROKEN);
  }
}
