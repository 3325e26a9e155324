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
  /** Idle streams by tunnel, and by service name for services other than the default. */
  readonly #byService = new Map<string, IdleStream[]>();
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
    const idle = this.#byService.get(serviceKeyOf(service, serviceName));
    for (let one = idle?.pop(); one !== undefined; one = idle?.pop()) {
      const isFresh = nowMs - one.sinceMs <= maxIdleMs;
      const isUsable = one.service === service && one.stream.state === 'open' && !one.stream.isRetiring;
      if (isFresh && isUsable) return one;
      one.stream.reset(UNUSED);
      // The remaining idle connections are even older, so none can be used.
      if (!isFresh) break;
    }
    return null;
  }

  give(kept: KeptStream): void {
    const { stream } = kept;
    // The window has grown for the previous visitor. The next visitor may be slow to read, so the stream is not reused.
    if (stream.hasGrown) return this.letClose(kept);
    const key = serviceKeyOf(kept.service, kept.serviceName);
    const idle = this.#byService.get(key) ?? [];
    if (idle.length >= HTTP_IDLE_STREAMS_PER_TUNNEL || stream.isRetiring) {
      stream.reset(UNUSED);
      return;
    }
    idle.push(new IdleStream(kept, this.#report));
    this.#byService.set(key, idle);
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
    for (const [key, idle] of this.#byService) {
      const kept = idle.filter(isKept);
      if (kept.length > 0) this.#byService.set(key, kept);
      else this.#byService.delete(key);
    }
  }

  close(): void {
    for (const one of [...this.#byService.values(), this.#closing].flat()) one.stream.reset(UNUSED);
    this.#byService.clear();
    this.#closing = [];
  }
}
