// Where visitors' streams arrive, of bytes and of datagrams: each is given to the tunnel it names. Knows how many are being served.
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

/** visitors that were quicker than the answer to the registration */
const PARKED_STREAMS_MAX = 1024;
/** a local service that is down is reported once in this time, not for every visitor */
export const LOCAL_DIAL_NOTICE_EVERY_MS = 5000;

export interface StreamHandlerOptions {
  readonly clock: Clock;
  readonly find: (tunnelId: string) => TunnelEntry | undefined;
  /** Whether the edge still owes an answer to a registration. */
  readonly expectsTunnels: () => boolean;
  /** Settles before a visitor is led to the tunnel's target, or rejects with a Fault; null, as for most targets, where nothing has to be looked up. */
  readonly checkTarget: (spec: ClientSpec) => Promise<void> | null;
  /** The same once more, by a look within the next second. */
  readonly checkLater: (spec: ClientSpec) => Promise<void>;
  readonly emit: (event: TunnelEvent) => void;
  /** Of what cost one visitor, and no other. */
  readonly report: ReportInternalError;
  /** The visitor's end with somebody looking at the requests that pass; itself when nobody wants to know. */
  readonly tap: (visitor: ByteDuplex, tunnel: TunnelEntry, stream: RequestStream, service?: string) => ByteDuplex;
  /** Instead of the one of the tunnel's kind. */
  readonly forward?: Forwarder;
  readonly flows?: OpenFlows;
}

/** What can be said to an offered stream of either kind. */
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
  /** A visitor may be quicker on a carrier than TunnelRegistered on the control connection. */
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
      // No visitor: what comes of it is served when it comes.
      else tunnel.published.accept(stream, peerId);
    };
    this.#dispatch({ stream, tunnelId, serve });
  }

  /** Of a peer: taken to the local service as a visitor of a tcp tunnel is. */
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

  /** An answer came, or none will come: look again at who waits. */
  recheck(): void {
    const waiting = this.#parked;
    this.#parked = [];
    for (const offered of waiting) this.#dispatch(offered);
  }

  /** Every CLIENT_TICK_MS, by the owner of the timer. */
  tick(now: number): void {
    this.#flows.tick(now);
  }

  /** Resolves when nobody is being served. No new visitors come: silent flows are not waited for. */
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
   * A look before a visitor is served can miss an inspector that is just starting, and an edge keeps a connection for further requests as long as they
   * come. So the looks go on, one a second for all visitors of the tunnel, until the visitor has gone or is cut off. A look that fails cuts nobody off.
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

  /** Returns what says that the visitor has gone; only the first time counts. */
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

  /** A service that is down is missed by every datagram: the words are made only when they are said. */
  #notice(tunnel: TunnelEntry, fault: () => Fault): void {
    const now = this.#options.clock.monotonic();
    if (now - tunnel.lastLocalNoticeAt < LOCAL_DIAL_NOTICE_EVERY_MS) return;
    tunnel.lastLocalNoticeAt = now;
    this.#options.emit({ type: 'local-error', tunnel, fault: fault() });
  }
}

const refuseUnknown = (stream: Offered): void =>
  stream.refuse({ code: 'unknown-tunnel', text: 'this client has no such tunnel' });
