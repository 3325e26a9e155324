// Receives visitors' byte and datagram streams, hands every stream to its tunnel, and counts the visitors being served.
import { Fault } from '@tunnel/errors';
import { BROKEN, type ByteDuplex, type DatagramStream, type MuxStream, type ReportInternalError } from '@tunnel/mux';
import type { RequestStream, StreamHead, StreamReason } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { localFault } from '../local/local-service.ts';
import { OpenFlows } from '../local/open-flows.ts';
import { kindOf } from './kinds/kinds.ts';
import { type Forwarder } from './kinds/tunnel-kind.ts';
import type { TunnelEntry } from './tunnel.ts';
import type { TunnelEvent } from './tunnel-event.ts';
import type { ClientSpec } from './tunnel-spec.ts';

/** Maximum number of streams that wait for the response to a tunnel's registration. */
const PARKED_STREAMS_MAX = 1024;
/** Minimum interval between reports of an unreachable local service. */
export const LOCAL_DIAL_NOTICE_EVERY_MS = 5000;

export interface StreamHandlerOptions {
  readonly clock: Clock;
  readonly find: (tunnelId: string) => TunnelEntry | undefined;
  /** Returns true while the edge has not answered all registrations of tunnels. */
  readonly expectsTunnels: () => boolean;
  /**
   * Checks a tunnel's target before a visitor is forwarded. Rejects with a Fault for a forbidden target. Null for most targets, which need
   * no check.
   */
  readonly checkTarget: (spec: ClientSpec) => Promise<void> | null;
  /** Repeats the check of the tunnel's target within the next second. */
  readonly checkLater: (spec: ClientSpec) => Promise<void>;
  readonly emit: (event: TunnelEvent) => void;
  /** Reports an internal error that affected only one visitor. */
  readonly report: ReportInternalError;
  /** Wraps the visitor's end so that passing requests can be observed. Returns the visitor's end unchanged if there are no observers. */
  readonly tap: (visitor: ByteDuplex, tunnel: TunnelEntry, stream: RequestStream, service?: string) => ByteDuplex;
  /** Function that forwards streams instead of the forwarder of the tunnel's kind. */
  readonly forward?: Forwarder;
  readonly flows?: OpenFlows;
}

/** Ways to reject a stream that the edge has offered, whether of bytes or of datagrams. */
interface Offered {
  refuse(reason: StreamReason): void;
  reset(reason: StreamReason): void;
}

interface Parked {
  readonly stream: Offered;
  readonly tunnelId: string;
  readonly serve: (tunnel: TunnelEntry) => void;
}

export class StreamHandler {
  readonly #options: StreamHandlerOptions;
  readonly #flows: OpenFlows;
  /** Streams that arrived on a carrier before TunnelRegistered arrived on the control connection. */
  #parked: Parked[] = [];
  #served = 0;
  readonly #idleWaiters = new Set<() => void>();

  constructor(options: StreamHandlerOptions) {
    this.#options = options;
    this.#flows = options.flows ?? new OpenFlows();
  }

  get served(): number {
    return this.#served;
  }

  onStream(stream: MuxStream, head: StreamHead): void {
    const { tunnelId, peerId } = head;
    const serve = (tunnel: TunnelEntry): void => {
      if (tunnel.published === null) this.#serve(stream, head, tunnel);
      else if (peerId === undefined) refuseUnknown(stream);
      // A relay stream of a peer is not counted as a visitor. Streams inside it are counted when they arrive.
      else tunnel.published.accept(stream, peerId);
    };
    this.#dispatch({ stream, tunnelId, serve });
  }

  /** Serves a peer's stream: forwards it to the local service like a visitor of a tcp tunnel. */
  servePeer(stream: MuxStream, tunnel: TunnelEntry): void {
    this.#serve(stream, { tunnelId: tunnel.tunnelId, visitor: '' }, tunnel, kindOf('tcp').forward);
  }

  servePeerFlow(stream: DatagramStream, head: StreamHead, tunnel: TunnelEntry): void {
    this.#serveFlow(stream, head, tunnel, kindOf('udp').forwardFlow);
  }

  onDatagramStream(stream: DatagramStream, head: StreamHead): void {
    this.#dispatch({ stream, tunnelId: head.tunnelId, serve: (tunnel) => this.#serveFlow(stream, head, tunnel) });
  }

  #dispatch(offered: Parked): void {
    const tunnel = this.#options.find(offered.tunnelId);
    if (tunnel !== undefined) return offered.serve(tunnel);
    if (!this.#options.expectsTunnels()) return refuseUnknown(offered.stream);
    if (this.#parked.length >= PARKED_STREAMS_MAX) {
      return offered.stream.refuse({ code: 'limit', text: 'too many visitors before the tunnel is ready' });
    }
    this.#parked.push(offered);
  }

  /** Dispatches the parked streams again, after a registration was answered or can no longer be answered. */
  recheck(): void {
    const waiting = this.#parked;
    this.#parked = [];
    for (const offered of waiting) this.#dispatch(offered);
  }

  /** Ends idle UDP flows. Called every CLIENT_TICK_MS by the owner of the timer. */
  tick(now: number): void {
    this.#flows.tick(now);
  }

  /** Resolves when no visitor is being served. Called after the last new visitor; silent flows are not waited for. */
  async whenIdle(): Promise<void> {
    this.#flows.drain();
    if (this.#served === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.add(resolve));
  }

  #serve(stream: MuxStream, head: StreamHead, tunnel: TunnelEntry, ofKind = kindOf(tunnel.protocol).forward): void {
    const { clock, checkTarget, tap, report, forward = ofKind } = this.#options;
    if (forward === null) return refuseUnknown(stream);
    const onDone = this.beginServing();
    const onDialFailed = (fault: Fault): void => this.#notice(tunnel, () => fault);
    const begin = (): Promise<void> =>
      forward(stream, tunnel, {
        clock,
        head,
        onDialFailed,
        onDone,
        tap: (visitor) => tap(visitor, tunnel, stream, head.service),
        abandon: report,
      });
    const refuse = (fault: Fault): void => {
      stream.refuse({ code: 'dial-refused', text: fault.message });
      onDialFailed(fault);
      onDone();
    };
    const check = checkTarget(tunnel.asked);
    const beginWatched = (): Promise<void> => {
      const { asked: spec } = tunnel;
      return begin().then(() => void this.#lookOn(stream, spec));
    };
    const served = check === null ? begin() : check.then(beginWatched, refuse);
    served.catch((error: unknown) => this.#broken(stream, error, 'client.forward', onDone));
  }

  /**
   * Repeats the target check once per second until the visitor leaves or is cut off. The check before the visit can miss an inspector that
   * is just starting, and the edge reuses a connection for many requests. A failed check does not cut off the visitor; only a forbidden
   * target does.
   */
  async #lookOn(stream: MuxStream, spec: ClientSpec): Promise<void> {
    while (stream.state === 'open') {
      const fault: unknown = await this.#options.checkLater(spec).then(
        () => null,
        (error: unknown) => error,
      );
      if (!(fault instanceof Fault) || fault.code !== 'CLIENT_TARGET_NOT_ALLOWED') continue;
      stream.cut({ code: 'cancelled', text: fault.message });
    }
  }

  #serveFlow(
    stream: DatagramStream,
    head: StreamHead,
    tunnel: TunnelEntry,
    forwardFlow = kindOf(tunnel.protocol).forwardFlow,
  ): void {
    const { clock, report } = this.#options;
    if (forwardFlow === null) return refuseUnknown(stream);
    const onDone = this.beginServing();
    forwardFlow(stream, head, tunnel, {
      flows: this.#flows,
      clock,
      onLocalError: (error) => {
        this.#notice(tunnel, () => (error instanceof Fault ? error : localFault(tunnel.target, error)));
      },
      onDone,
      report,
    }).catch((error: unknown) => this.#broken(stream, error, 'client.flow', onDone));
  }

  #broken(stream: Offered, error: unknown, where: string, onDone: () => void): void {
    this.#options.report(error, where);
    stream.reset(BROKEN);
    onDone();
  }

  /** Counts a visitor. Returns a function that ends the count; further calls have no effect. */
  beginServing(): () => void {
    this.#served += 1;
    let isServed = true;
    return () => {
      if (isServed) this.#endServing();
      isServed = false;
    };
  }

  #endServing(): void {
    this.#served -= 1;
    if (this.#served > 0) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }

  /** Reports an unreachable service. `fault` is a function because a failing service is noticed for every datagram, but reported rarely. */
  #notice(tunnel: TunnelEntry, fault: () => Fault): void {
    const now = this.#options.clock.monotonic();
    if (now - tunnel.lastLocalNoticeAt < LOCAL_DIAL_NOTICE_EVERY_MS) return;
    tunnel.lastLocalNoticeAt = now;
    this.#options.emit({ type: 'local-error', tunnel, fault: fault() });
  }
}

const refuseUnknown = (stream: Offered): void =>
  stream.refuse({ code: 'unknown-tunnel', text: 'this client has no such tunnel' });
