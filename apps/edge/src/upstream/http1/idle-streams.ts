// Streams with an open, unused connection to a local service. The next request to the same service takes the most recently used stream. A
// stream that receives bytes while idle, or is too old, is closed, because its service is about to disconnect.
import { BROKEN, type ByteReader, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { UpstreamStream } from '../upstream.ts';
import { type Service, serviceKeyOf } from '../upstream-request.ts';

/** Maximum idle connections kept to a local service. */
const HTTP_IDLE_STREAMS_PER_TUNNEL = 256;

const UNUSED: StreamReason = { code: 'cancelled', text: 'no longer needed' };
const UNASKED: StreamReason = { code: 'cancelled', text: 'unexpected bytes' };

export interface KeptStream {
  readonly service: Service;
  /** Name of the client's service. Null for the tunnel's default service. */
  readonly serviceName: string | null;
  readonly stream: UpstreamStream;
  /** Number of requests that the kept connection has carried so far. */
  readonly requests: number;
  readonly sinceMs: number;
}

/** Watches an idle connection to a local service, which may close or send unexpected data. */
class IdleStream implements ByteReader {
  readonly service: Service;
  readonly stream: UpstreamStream;
  readonly requests: number;
  readonly sinceMs: number;
  /** The next older idle stream to the same service. */
  older: IdleStream | null = null;
  /** Number of idle streams in the list that begins with this stream. */
  depth = 1;
  readonly #report: ReportInternalError;

  constructor({ service, stream, requests, sinceMs }: KeptStream, report: ReportInternalError) {
    this.#report = report;
    this.service = service;
    this.stream = stream;
    this.requests = requests;
    this.sinceMs = sinceMs;
    stream.read(this);
  }

  onData(): boolean {
    this.stream.reset(UNASKED);
    return true;
  }

  onDrain(): void {}

  onEnd(): void {
    this.stream.reset(UNUSED);
  }

  onReset(): void {}

  abandon(error: unknown, where: string): void {
    this.#report(error, where);
    this.stream.reset(BROKEN);
  }
}

export class IdleStreams {
  /**
   * The most recently used idle stream of a service, by tunnel and by service name for services other than the default. The streams are
   * linked: an array per service would be allocated again for almost every request to an edge with thousands of tunnels, and live long
   * enough to need a full garbage collection. Null until the sweep if a service has no idle stream left.
   */
  readonly #byService = new Map<string, IdleStream | null>();
  /** Connections of services that announced to close after the response. */
  #closing: IdleStream[] = [];
  readonly #report: ReportInternalError;

  constructor(report: ReportInternalError) {
    this.#report = report;
  }

  /**
   * Takes an idle stream, or returns null. `maxIdleMs`: a request that cannot be sent again only takes a recently used stream. A tunnel
   * that was registered again may have another service, so its earlier streams are not used.
   */
  take(service: Service, serviceName: string | null, nowMs: number, maxIdleMs: number): IdleStream | null {
    const key = serviceKeyOf(service, serviceName);
    let one = this.#byService.get(key) ?? null;
    if (one === null) return null;
    let found: IdleStream | null = null;
    for (let isFresh = true; isFresh && found === null && one !== null; one = one.older) {
      isFresh = nowMs - one.sinceMs <= maxIdleMs;
      // The remaining idle connections are even older than a stream that is not fresh, so none can be used.
      if (isFresh && isUsable(one, service)) found = one;
      else one.stream.reset(UNUSED);
    }
    this.#byService.set(key, one);
    return found;
  }

  give(kept: KeptStream): void {
    const { stream } = kept;
    // The window has grown for the previous visitor. The next visitor may be slow to read, so the stream is not reused.
    if (stream.hasGrown) return this.letClose(kept);
    const key = serviceKeyOf(kept.service, kept.serviceName);
    const older = this.#byService.get(key) ?? null;
    if (stream.isRetiring || (older !== null && older.depth >= HTTP_IDLE_STREAMS_PER_TUNNEL)) {
      stream.reset(UNUSED);
      return;
    }
    const newest = new IdleStream(kept, this.#report);
    link(newest, older);
    this.#byService.set(key, newest);
  }

  /** Ends a stream that is not reused. It closes when the service disconnects, or in the sweep. */
  letClose(kept: KeptStream): void {
    this.#closing.push(new IdleStream(kept, this.#report));
    kept.stream.end();
  }

  /**
   * Closes old streams. Called once a second. Streams of a closed tunnel are closed as well, because its client waits for the last stream
   * before stopping.
   */
  sweep(nowMs: number, isListed: (service: Service) => boolean): void {
    const isKept = (one: IdleStream): boolean => {
      const isYoung = nowMs - one.sinceMs < EDGE_LIMITS.HTTP_IDLE_STREAM_MS;
      const isGood = isYoung && one.stream.state === 'open' && isListed(one.service);
      if (!isGood) one.stream.reset(UNUSED);
      return isGood;
    };
    this.#closing = this.#closing.filter(isKept);
    for (const [key, newest] of this.#byService) {
      const kept = keep(newest, isKept);
      if (kept === null) this.#byService.delete(key);
      else if (kept !== newest) this.#byService.set(key, kept);
    }
  }

  close(): void {
    for (const one of this.#closing) one.stream.reset(UNUSED);
    for (const newest of this.#byService.values()) {
      for (let one = newest; one !== null; one = one.older) one.stream.reset(UNUSED);
    }
    this.#byService.clear();
    this.#closing = [];
  }
}

const isUsable = ({ service, stream }: IdleStream, forService: Service): boolean =>
  service === forService && stream.state === 'open' && !stream.isRetiring;

const link = (one: IdleStream, older: IdleStream | null): void => {
  one.older = older;
  one.depth = 1 + (older?.depth ?? 0);
};

/** Returns the list of idle streams without the streams that `isKept` rejects. Oldest first, because a depth counts the older streams. */
const keep = (one: IdleStream | null, isKept: (one: IdleStream) => boolean): IdleStream | null => {
  if (one === null) return null;
  const older = keep(one.older, isKept);
  if (!isKept(one)) return older;
  link(one, older);
  return one;
};
