// An authenticated connection to an edge: the control link, the multiplexer and its carriers. A session is never reused: after a lost
// connection a new session takes over, while old streams finish on carriers still open.

import { Fault } from '@tunnel/errors';
import {
  type DatagramStream,
  type DatagramWay,
  MuxSession,
  type MuxStream,
  type OpenAnswer,
  type PendingStream,
  processBudget,
  type ReportInternalError,
} from '@tunnel/mux';
import type { EdgeUdp } from '@tunnel/peer';
import {
  agreeOn,
  CAPABILITIES,
  CLOSE_CODES,
  type ControlMessage,
  type ControlMessageInput,
  carrierTagOf,
  type MessageOf,
  type StreamHead,
  type StreamReason,
} from '@tunnel/protocol';
import { reachesOwnMachine } from '@tunnel/rules/net';
import { type Clock, type Logger, sha256Hex } from '@tunnel/runtime';
import { reasonOf, unreachable } from '../network/dial-faults.ts';
import { AttemptFailed } from './authenticate.ts';
import { dialCarrier } from './carrier-dialer.ts';
import { CarrierKeeper } from './carrier-keeper.ts';
import type { ControlLink } from './control-link.ts';
import { DatagramPath } from './datagram-path.ts';
import type { Endpoint } from './dial-socket.ts';
import type { TlsSession } from './tls-session.ts';

const NOT_NEEDED: StreamReason = { code: 'cancelled', text: 'not needed' };

/** Timeout for the first carrier. A session without a carrier by then is closed and dialed again. */
const FIRST_CARRIER_TIMEOUT_MS = 15_000;

export interface SessionEnd {
  readonly fault: Fault;
  /** True if a reconnect to the edge would end in the same way. */
  readonly final: boolean;
}

/** Facts about the session with the edge, for programs that embed the client. */
export interface SessionFacts {
  readonly id: string;
  /** Id of the edge's region, as reported by the edge. */
  readonly regionId: string;
  /** Region name, account, plan and dashboard URL, as known to the edge's platform. Null without a platform. */
  readonly regionName: string | null;
  readonly account: string | null;
  readonly plan: string | null;
  readonly dashboardUrl: string | null;
  readonly carriers: number;
  /** Round trip time of the last ping on the control connection. Null until a ping was answered. */
  readonly latencyMs: number | null;
}

export interface SessionHandlers {
  onMessage(message: ControlMessage): void;
  onStream(stream: MuxStream, head: StreamHead): void;
  onDatagramStream(stream: DatagramStream, head: StreamHead): void;
  /** Called with the current transport of the session's datagrams, once udp tunnels exist. */
  onDatagramWay(way: DatagramWay): void;
  /** Called when the edge announces that it shuts down. Running streams may finish. */
  onShuttingDown(reason: string): void;
  /** Called once, when the session's control connection has ended. */
  onEnd(end: SessionEnd): void;
}

export interface SessionOptions {
  readonly link: ControlLink;
  readonly hello: MessageOf<'AuthOk'>;
  readonly endpoint: Endpoint;
  /** TLS session of the control connection, which carriers resume. */
  readonly tlsSession: TlsSession;
  readonly agent: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly report: ReportInternalError;
  readonly handlers: SessionHandlers;
}

export class Session {
  readonly id: string;
  readonly resumed: boolean;
  readonly link: ControlLink;
  readonly capabilities: readonly string[];
  readonly #options: SessionOptions;
  readonly #mux: MuxSession;
  readonly #keeper: CarrierKeeper;
  readonly #datagramPath: DatagramPath;
  #end: SessionEnd | null = null;
  #isMeasured = false;
  #lastDialError: unknown;
  #started: { readonly resolve: () => void; readonly reject: (failure: AttemptFailed) => void } | null = null;

  constructor(options: SessionOptions) {
    const { hello, clock } = options;
    this.id = hello.session_id;
    this.resumed = hello.resumed;
    this.link = options.link;
    this.#options = options;
    // Ignores capabilities in the edge's response that the client did not offer.
    this.capabilities = agreeOn(hello.capabilities ?? [], CAPABILITIES);
    this.#mux = new MuxSession({
      role: 'client',
      budget: processBudget(),
      clock,
      capabilities: this.capabilities,
      handlers: {
        onStream: (stream, head) => {
          this.#fitCarriers();
          options.handlers.onStream(stream, head);
        },
        onDatagramStream: (stream, head) => options.handlers.onDatagramStream(stream, head),
        onCarrierLost: (info) => this.#onCarrierLost(info),
        report: options.report,
      },
    });
    this.#keeper = this.#makeKeeper();
    this.#datagramPath = new DatagramPath({
      mux: this.#mux,
      address: options.link.remoteAddress,
      clock,
      report: options.report,
      onWay: (way) => options.handlers.onDatagramWay(way),
    });
  }

  /** Starts the carriers and resolves with the first open carrier, because a tunnel without a carrier would reject its visitors. */
  async start(): Promise<void> {
    const { hello, clock, endpoint } = this.#options;
    this.link.setPace({ pingEveryMs: hello.ping_interval_secs * 1000, deadAfterMs: hello.dead_after_secs * 1000 });
    const late = clock.setTimeout(() => {
      const reason = this.#lastDialError === undefined ? 'no carrier could be opened' : reasonOf(this.#lastDialError);
      this.link.drop(unreachable(endpoint.address.text, reason));
    }, FIRST_CARRIER_TIMEOUT_MS);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#started = { resolve, reject };
        this.link.listen({
          onMessage: (message) => this.#onMessage(message),
          // Another connection took over the session. Reconnecting would only take the session away again.
          onEnd: ({ closeCode, fault }) => this.#finish({ fault, final: closeCode === CLOSE_CODES.replaced }),
        });
        this.#keeper.start(hello.carriers.tokens);
      });
    } finally {
      late.cancel();
    }
  }

  get facts(): SessionFacts {
    const { session_id: id, region_id: regionId, region, account, plan, dashboard_url } = this.#options.hello;
    return {
      id,
      regionId,
      regionName: region?.name ?? null,
      account: account ?? null,
      plan: plan ?? null,
      dashboardUrl: dashboard_url ?? null,
      carriers: this.#mux.openCarriers,
      latencyMs: this.link.roundTripMs,
    };
  }

  get liveStreams(): number {
    return this.#mux.liveStreams;
  }

  /** True if no more streams can run on this session. */
  get isSpent(): boolean {
    return this.#mux.liveStreams === 0 || this.#mux.openCarriers === 0;
  }

  send(message: ControlMessageInput): void {
    this.link.send(message);
  }

  drop(fault: Fault): void {
    this.link.drop(fault);
  }

  /** Endpoint at the edge that tells any socket of this client its public address. Null if the edge does not offer observation. */
  get observer(): EdgeUdp | null {
    return this.#datagramPath.observer;
  }

  /**
   * REST and metrics ports of an edge on this machine. Ports reported by a remote edge are ignored, because they must not affect what is
   * published here.
   */
  get edgePorts(): readonly number[] {
    return reachesOwnMachine(this.edgeAddress) ? (this.#options.hello.local_ports ?? []) : [];
  }

  /** IP address of the edge on the control connection. Empty behind a proxy. */
  get edgeAddress(): string {
    return this.link.remoteAddress;
  }

  /** Opens a stream to the edge, as MuxSession.open does. */
  openStream(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    return this.#mux.open(head, answer);
  }

  /**
   * Stops the datagram path before the client says goodbye, because the edge then forgets the keys. Running datagram streams continue on
   * carriers.
   */
  leaveDatagramPath(): void {
    this.#datagramPath.stop();
  }

  reserveForDatagrams(): void {
    this.#mux.reserveForDatagrams();
    this.#datagramPath.want();
  }

  /** Stops accepting streams on this session because another session takes over. Running streams may finish. */
  retire(reason: string): void {
    this.#keeper.stop();
    this.#mux.drain(reason);
  }

  tick(now: number): void {
    // Measures the latency on the first tick. The first regular ping is far away, and a ping at the start would measure a busy process.
    if (!this.#isMeasured) void this.link.roundTrip();
    this.#isMeasured = true;
    this.link.tick(now);
    this.#mux.tick(now);
    this.#fitCarriers();
  }

  #fitCarriers(): void {
    this.#keeper.fit(this.#mux.byteStreams, this.#options.clock.monotonic());
  }

  close(reason: StreamReason): void {
    this.#keeper.stop();
    this.#datagramPath.stop();
    this.#mux.close(reason);
    this.link.close(1000, '');
  }

  #makeKeeper(): CarrierKeeper {
    const { hello, clock, random, logger, endpoint, tlsSession, agent, link } = this.#options;
    const { count, path } = hello.carriers;
    return new CarrierKeeper({
      count,
      clock,
      random,
      logger,
      dial: (token, signal) => dialCarrier(endpoint, { clock, agent, path, token, signal, tlsSession }),
      adopt: (carrier, token) => {
        const carrierId = this.#mux.addCarrier(carrier, 0, carrierTagOf(sha256Hex(token)));
        this.#started?.resolve();
        return carrierId;
      },
      requestTokens: (wanted) => link.send({ type: 'RequestCarriers', count: wanted }),
      spareCarrier: () => this.#mux.spareCarrier,
      retireCarrier: (carrierId) => this.#mux.retireCarrier(carrierId, NOT_NEEDED),
      onDialFailed: (error) => {
        this.#lastDialError = error;
      },
    });
  }

  #onCarrierLost(info: { carrierId: number; reason: string; protocolViolation: boolean }): void {
    this.#options.logger.debug({ carrier: info.carrierId, reason: info.reason }, 'carrier lost');
    this.#keeper.onCarrierLost(info.carrierId);
    if (info.protocolViolation) this.link.drop(new Fault('CARRIER_PROTOCOL', { reason: info.reason }));
  }

  #onMessage(message: ControlMessage): void {
    const { handlers, logger } = this.#options;
    switch (message.type) {
      case 'CarrierTokens':
        return this.#keeper.onTokens(message.tokens);
      case 'DatagramPath':
        // Behind a proxy there is no address for datagrams: they travel on carriers, and peer traffic on the relay.
        if (this.edgeAddress === '') return;
        return this.#datagramPath.offered(message);
      case 'ShuttingDown':
        return handlers.onShuttingDown(message.reason);
      case 'Error': {
        const fault = Fault.fromWire(message.code, message.message);
        if (!message.fatal)
          return logger.warn({ code: message.code, reason: message.message }, 'error reported by the edge');
        this.#finish({ fault, final: !message.retryable });
        return this.link.close(1000, '');
      }
      default:
        return handlers.onMessage(message);
    }
  }

  #finish(end: SessionEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#keeper.stop();
    // The path's keys expire with the connection. While a draining edge keeps the connection open, datagrams still use the path.
    this.#datagramPath.stop();
    this.#started?.reject(new AttemptFailed(end.fault, { final: end.final }));
    this.#options.handlers.onEnd(end);
  }
}
