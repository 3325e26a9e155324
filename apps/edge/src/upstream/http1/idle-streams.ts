// Streams whose local connection is open and free: the next request to the same service of a tunnel takes the youngest one.
// One that says anything meanwhile, or is too old, is closed: its service is about to hang up.
import { BROKEN, type ByteReader, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { UpstreamStream } from '../upstream.ts';
import { type Service, serviceKeyOf } from '../upstream-request.ts';

/** open connections to one local service that wait for the next request */
const HTTP_IDLE_STREAMS_PER_TUNNEL = 256;

const UNUSED: StreamReason = { code: 'cancelled', text: 'no longer needed' };
const UNASKED: StreamReason = { code: 'cancelled', text: 'unexpected bytes' };

export interface KeptStream {
  readonly service: Service;
  /** null: the tunnel's own. */
  readonly serviceName: string | null;
  readonly stream: UpstreamStream;
  /** That it has carried. */
  readonly requests: number;
  readonly sinceMs: number;
}

/** Watches one idle stream. */
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
  /** By tunnel, and by the name of the service where it is not the tunnel's own. */
  readonly #byService = new Map<string, IdleStream[]>();
  /** Their service said that it closes after this response. */
  #closing: IdleStream[] = [];
  readonly #report: ReportInternalError;

  constructor(report: ReportInternalError) {
    this.#report = report;
  }

  /**
   * `maxIdleMs`: a request that cannot be sent again takes only a stream that was in use just now. A tunnel that was registered anew may lead
   * to another service since: what was kept of it before is of no use.
   */
  take(service: Service, serviceName: string | null, nowMs: number, maxIdleMs: number): IdleStream | null {
    const idle = this.#byService.get(serviceKeyOf(service, serviceName));
    for (let one = idle?.pop(); one !== undefined; one = idle?.pop()) {
      const isFresh = nowMs - one.sinceMs <= maxIdleMs;
      const isUsable = one.service === service && one.stream.state === 'open' && !one.stream.isRetiring;
      if (isFresh && isUsable) return one;
      one.stream.reset(UNUSED);
      // The others are older still.
      if (!isFresh) break;
    }
    return null;
  }

  give(kept: KeptStream): void {
    const { stream } = kept;
    // The next visitor may be one that never reads: the large window was for the last one.
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

  /** Not to be used again: it ends when the service hangs up, or by the sweep. */
  letClose(kept: KeptStream): void {
    this.#closing.push(new IdleStream(kept, this.#report));
    kept.stream.end();
  }

  /** Once a second. A tunnel that has ended needs none: its client waits for the last stream before it stops. */
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
