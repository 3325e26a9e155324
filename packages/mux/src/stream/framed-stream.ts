// What a carrier's frames are handed to: a stream of bytes or of datagrams, from OPEN to its end. Each answers false to a frame that does not
// fit it, which is a violation.
import type { StreamReason } from '@tunnel/protocol';
import type { ListNode } from '@tunnel/rules/collections';
import { BROKEN, type ByteReader } from '../bytes/byte-duplex.ts';
import type { Guarded, ReportInternalError } from '../loop/guard.ts';

export type StreamState = 'opening' | 'offered' | 'open' | 'closed';

/** What every stream needs of the connection that carries it. */
export interface FramingConnection {
  /** It takes no new streams; those it has finish. */
  readonly retiring: boolean;
  sendRefused(stream: FramedStream, reason: StreamReason): void;
  sendReset(stream: FramedStream, reason: StreamReason): void;
  forget(stream: FramedStream): void;
  /** Of a stream that nobody reads yet, or whose reader could not even let go of it. */
  readonly report: ReportInternalError;
}

/** The peer's answer to OPEN. */
export interface StreamAnswer<Stream> extends Guarded {
  onOpened(stream: Stream): void;
  onRefused(reason: StreamReason): void;
}

type StreamReader = Pick<ByteReader, 'onReset' | 'abandon'>;

/** Guarded calls of one kind of stream, as reports name them. */
type GuardedCalls = Readonly<Record<'opened' | 'refused' | 'reset', string>>;

export abstract class FramedStream<
  Connection extends FramingConnection = FramingConnection,
  Reader extends StreamReader = StreamReader,
> {
  readonly id: number;
  readonly openedAtMs: number;
  /** Tunnel that this side has opened the stream for; empty for streams of the peer. */
  tunnelId = '';
  /** Its place among those that the peer has not answered yet. */
  unanswered: ListNode<FramedStream> | null = null;
  protected readonly connection: Connection;
  protected phase: StreamState;
  protected reader: Reader | null = null;
  #answer: StreamAnswer<FramedStream> | null;

  /** Without an answer to come it is the peer's, and waits for ours. */
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

  /** Its carrier is about to go: whoever keeps a stream for later use lets go of this one. */
  get isRetiring(): boolean {
    return this.connection.retiring;
  }

  protected abstract readonly calls: GuardedCalls;
  abstract handleOpened(creditBytes: number): boolean;
  abstract handleData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  abstract handleDatagram(bytes: Buffer, start: number, end: number): boolean;
  abstract handleCredit(bytes: number): boolean;
  abstract handleFin(): boolean;
  /** The carrier is being replaced, and its session lives on: whoever can begin anew elsewhere does. */
  abstract handleRetiring(): void;
  /** The carrier has sent what it had. */
  abstract carrierReady(): void;
  /** Of a stream that is not closed: gives back what it holds. */
  protected abstract close(): void;

  // ---- opening ----

  /** The accepting side: the local service did not answer. */
  refuse(reason: StreamReason): void {
    if (this.phase !== 'offered') return;
    this.connection.sendRefused(this, reason);
    this.close();
  }

  /** The peer's answer to our OPEN has come. */
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

  /** Both directions at once; the other side sees a reset. Idempotent; the own reader is not told. */
  reset(reason: StreamReason): void {
    if (this.phase === 'offered') this.refuse(reason);
    if (this.phase === 'closed') return;
    this.#answer = null;
    this.connection.sendReset(this, reason);
    this.close();
  }

  /** The peer, the carrier or a time limit ended both directions. */
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

  /** What threw costs this stream, never its carrier. The reader is told first: it knows what can still be said, and to whom. */
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
