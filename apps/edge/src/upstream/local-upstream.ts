// An upstream on a port of the same machine. Each stream is a separate connection, dialed when the stream is opened. Requests to the
// platform's host thereby take the same path as requests to tunnels.
import {
  BROKEN,
  type ByteDuplex,
  type ByteReader,
  connectSocket,
  type PendingStream,
  type ReportInternalError,
} from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import type { Upstream, UpstreamAnswer, UpstreamStream } from './upstream.ts';

/** Maximum time for the platform on the same machine to accept a connection. */
const PLATFORM_DIAL_TIMEOUT_MS = 5000;
/** Maximum concurrent connections to the platform. Further requests are rejected with a retry hint. */
export const PLATFORM_STREAMS_MAX = 2000;

/** Rejects with Node's error. `signal` aborts when the connection is no longer needed. */
export type LocalDial = (head: StreamHead, signal: AbortSignal) => Promise<ByteDuplex>;

export interface LocalUpstreamOptions {
  readonly dial: LocalDial;
  readonly clock: Clock;
  readonly report: ReportInternalError;
}

/**
 * Returns the dial function of an address. Ignores the abort signal: local connections are fast, and the caller closes an unneeded
 * connection.
 */
export const createLocalDial =
  ({ host, port }: { readonly host: string; readonly port: number }, clock: Clock): LocalDial =>
  () =>
    connectSocket({ host, port, timeoutMs: PLATFORM_DIAL_TIMEOUT_MS, clock });

const FULL: StreamReason = { code: 'limit', text: 'too many concurrent requests' };
const LATE: StreamReason = { code: 'dial-timeout', text: 'ETIMEDOUT' };
const UNWANTED: StreamReason = { code: 'cancelled', text: 'no longer needed' };

export class LocalUpstream implements Upstream {
  /** Always true for a service on this machine, because only a request shows whether the service runs. */
  readonly isConnected = true;
  readonly connection = this;
  readonly takesFlows = false;
  readonly #options: LocalUpstreamOptions;
  #nextId = 1;
  #liveStreams = 0;

  constructor(options: LocalUpstreamOptions) {
    this.#options = options;
  }

  /** Number of open connections to local services, including connections being opened. */
  get liveStreams(): number {
    return this.#liveStreams;
  }

  open(head: StreamHead, answer: UpstreamAnswer): PendingStream | null {
    this.#liveStreams += 1;
    const { clock, dial, report } = this.#options;
    const id = this.#nextId;
    this.#nextId += 1;
    const left = (): void => {
      this.#liveStreams -= 1;
    };
    const opening = new Opening(answer, { id, clock, report, left });
    if (this.#liveStreams > PLATFORM_STREAMS_MAX) queueMicrotask(() => opening.refuse(FULL));
    else opening.dial(head, dial);
    return opening;
  }

  /** Returns null, because services on this machine accept no datagrams. */
  openDatagrams(): null {
    return null;
  }
}

interface OpeningParts {
  readonly id: number;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** Called once, when the connection to the local service has ended. */
  readonly left: () => void;
}

/** An attempt to connect to a local service. Gives exactly one answer, unless canceled. */
class Opening implements PendingStream {
  readonly #answer: UpstreamAnswer;
  readonly #options: OpeningParts;
  readonly #calledOff = new AbortController();
  #timeout: Timer | undefined;
  #isOver = false;

  constructor(answer: UpstreamAnswer, options: OpeningParts) {
    this.#answer = answer;
    this.#options = options;
  }

  dial(head: StreamHead, dial: LocalDial): void {
    this.#timeout = this.#options.clock.setTimeout(() => this.refuse(LATE), PLATFORM_DIAL_TIMEOUT_MS);
    dial(head, this.#calledOff.signal).then(
      (end) => this.#opened(end),
      (error: unknown) => this.refuse(reasonOf(error)),
    );
  }

  refuse(reason: StreamReason): void {
    if (!this.#end()) return;
    this.#calledOff.abort();
    this.#options.left();
    this.#tell(() => this.#answer.onRefused(reason), 'local.refused');
  }

  reset(): void {
    if (!this.#end()) return;
    this.#calledOff.abort();
    this.#options.left();
  }

  #opened(end: ByteDuplex): void {
    if (!this.#end()) return end.reset(UNWANTED);
    const stream = new LocalStream(end, this.#options);
    if (!this.#tell(() => this.#answer.onOpened(stream), 'local.opened')) stream.reset(BROKEN);
  }

  #tell(act: () => void, where: string): boolean {
    try {
      act();
      return true;
    } catch (error) {
      abandon(this.#answer, error, where, this.#options.report);
      return false;
    }
  }

  /** Ends the connection attempt. Returns false if it has ended already. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#timeout?.cancel();
    return true;
  }
}

/** Passes an error to its owner. An error thrown by the owner itself is only reported. */
const abandon = (
  owner: { abandon(error: unknown, where: string): void },
  error: unknown,
  where: string,
  report: ReportInternalError,
): void => {
  try {
    owner.abandon(error, where);
  } catch (second) {
    report(second, where);
  }
};

const reasonOf = (error: unknown): StreamReason => {
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  return { code: code === 'ETIMEDOUT' ? 'dial-timeout' : 'dial-refused', text: code };
};

/**
 * A connection as a stream that is read by successive readers. Memory is never lent to readers, because the next reader's bytes go into the
 * same buffer.
 */
class LocalStream implements UpstreamStream, ByteReader {
  readonly id: number;
  readonly carrierTag = '';
  readonly isRetiring = false;
  readonly hasGrown = false;
  readonly #end: ByteDuplex;
  readonly #options: OpeningParts;
  #reader: ByteReader | null = null;
  #state: 'open' | 'closed' = 'open';
  /** True if the reader has stopped the connection's data and not resumed yet. */
  #isStopped = false;
  #hasEnded = false;
  #endAsked = false;
  #endSent = false;

  constructor(end: ByteDuplex, options: OpeningParts) {
    this.id = options.id;
    this.#end = end;
    this.#options = options;
  }

  get state(): UpstreamStream['state'] {
    return this.#state;
  }

  // ---- reading ----

  read(reader: ByteReader): void {
    const isFirst = this.#reader === null;
    this.#reader = reader;
    if (isFirst) this.#end.read(this);
    else if (this.#hasEnded) reader.onEnd();
    else if (this.#isStopped) this.resume();
  }

  resume(): void {
    this.#isStopped = false;
    if (this.#state === 'open') this.#end.resume();
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader;
    const goesOn = reader?.onData(bytes, start, end, false) ?? true;
    // The reader changed during the call. The new reader has received none of the bytes and would never call resume(), so the stream
    // continues.
    this.#isStopped = !goesOn && this.#reader === reader;
    return !this.#isStopped;
  }

  onDrain(): void {
    this.#reader?.onDrain();
  }

  onEnd(): void {
    this.#hasEnded = true;
    this.#reader?.onEnd();
    this.#closeIfDone();
  }

  onReset(reason: StreamReason): void {
    this.#close();
    this.#reader?.onReset(reason);
  }

  abandon(error: unknown, where: string): void {
    const { report } = this.#options;
    if (this.#reader === null) report(error, where);
    else abandon(this.#reader, error, where, report);
    this.reset(BROKEN);
  }

  // ---- writing ----

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#state !== 'open' || this.#endAsked) return true;
    return this.#end.write(bytes, start, end, borrowed);
  }

  end(onFlushed?: () => void): void {
    if (this.#state !== 'open' || this.#endAsked) return;
    this.#endAsked = true;
    this.#end.end(() => {
      this.#endSent = true;
      this.#closeIfDone();
      onFlushed?.();
    });
  }

  // ---- closing ----

  reset(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    this.#close();
    this.#end.reset(reason);
  }

  /** Marks the stream as closed once both directions have ended. The connection then closes automatically. */
  #closeIfDone(): void {
    if (this.#hasEnded && this.#endSent) this.#close();
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#options.left();
  }
}
