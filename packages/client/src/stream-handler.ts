// Where visitors' streams arrive: each is given to the tunnel it names. Knows how many are being served.
import type { Fault } from '@tunnel/errors';
import { BROKEN, type ByteDuplex, type MuxStream, type ReportInternalError } from '@tunnel/mux';
import type { StreamHead } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { type Forwarder, kindOf } from './forward/kinds.ts';
import { CLIENT_LIMITS } from './limits.ts';
import type { StatusEvent } from './status.ts';
import type { TunnelEntry } from './tunnel.ts';

export interface StreamHandlerDeps {
  readonly clock: Clock;
  readonly find: (tunnelId: string) => TunnelEntry | undefined;
  /** Whether the edge still owes an answer to a registration. */
  readonly expectsTunnels: () => boolean;
  readonly emit: (event: StatusEvent) => void;
  /** Of what cost one visitor, and no other. */
  readonly report: ReportInternalError;
  /** The visitor's end with somebody looking at the requests that pass; itself when nobody wants to know. */
  readonly tap: (visitor: ByteDuplex, tunnel: TunnelEntry) => ByteDuplex;
  /** Instead of the one of the tunnel's kind. */
  readonly forward?: Forwarder;
}

interface Parked {
  readonly stream: MuxStream;
  readonly head: StreamHead;
}

export class StreamHandler {
  readonly #deps: StreamHandlerDeps;
  /** A visitor may be quicker on a carrier than TunnelRegistered on the control connection. */
  #parked: Parked[] = [];
  #served = 0;
  readonly #idleWaiters = new Set<() => void>();

  constructor(deps: StreamHandlerDeps) {
    this.#deps = deps;
  }

  get served(): number {
    return this.#served;
  }

  onStream(stream: MuxStream, head: StreamHead): void {
    const tunnel = this.#deps.find(head.tunnelId);
    if (tunnel !== undefined) return this.#serve(stream, tunnel);
    if (!this.#deps.expectsTunnels()) return refuseUnknown(stream);
    if (this.#parked.length >= CLIENT_LIMITS.PARKED_STREAMS_MAX) {
      return stream.refuse({ code: 'limit', text: 'too many visitors before the tunnel is ready' });
    }
    this.#parked.push({ stream, head });
  }

  /** An answer came, or none will come: look again at who waits. */
  recheck(): void {
    const waiting = this.#parked;
    this.#parked = [];
    for (const { stream, head } of waiting) this.onStream(stream, head);
  }

  /** Resolves when nobody is being served. */
  async whenIdle(): Promise<void> {
    if (this.#served === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.add(resolve));
  }

  #serve(stream: MuxStream, tunnel: TunnelEntry): void {
    this.#served += 1;
    let isServed = true;
    const ended = (): void => {
      if (isServed) this.#oneLess();
      isServed = false;
    };
    const { tap, report, forward = kindOf(tunnel.protocol).forward } = this.#deps;
    forward(stream, tunnel, {
      onDialFailed: (fault) => this.#notice(tunnel, fault),
      onDone: ended,
      tap: (visitor) => tap(visitor, tunnel),
      abandon: report,
    }).catch((error: unknown) => {
      report(error, 'client.forward');
      stream.reset(BROKEN);
      ended();
    });
  }

  #oneLess(): void {
    this.#served -= 1;
    if (this.#served > 0) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }

  #notice(tunnel: TunnelEntry, fault: Fault): void {
    const now = this.#deps.clock.monotonic();
    if (now - tunnel.lastLocalNoticeAt < CLIENT_LIMITS.LOCAL_DIAL_NOTICE_EVERY_MS) return;
    tunnel.lastLocalNoticeAt = now;
    this.#deps.emit({ type: 'local-error', tunnel, fault });
  }
}

const refuseUnknown = (stream: MuxStream): void =>
  stream.refuse({ code: 'unknown-tunnel', text: 'this client has no such tunnel' });
