// Connections to local services that speak unencrypted HTTP/2 (h2c). Each connection is a stream of the client's session with Node's HTTP/2
// client on top. A few connections are shared by the calls of a tunnel and closed when unused.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
  type Settings,
} from 'node:http2';
import { Fault } from '@tunnel/errors';
import { BROKEN, guard, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import { faultOfRefusal, type UpstreamAnswer, type UpstreamStream } from '../upstream.ts';
import { type Service, serviceKeyOf, streamHeadOf, type UpstreamContext } from '../upstream-request.ts';
import type { H2cUpstream } from './h2c-upstream.ts';
import { StreamDuplex } from './stream-duplex.ts';

/** Maximum connections to a local h2c service (HTTP/2 without TLS). Further calls share them. */
const H2C_SESSIONS_PER_TUNNEL = 16;
/** Calls on an h2c connection above which another connection is opened. */
const H2C_STREAMS_PER_SESSION = 100;
/** Time for which an unused h2c connection stays open. */
export const H2C_SESSION_IDLE_MS = 60_000;
/** Time that a service has to close an unused h2c connection or call before the edge cuts it. */
export const H2C_LINGER_MS = 5_000;

export interface H2cConnectionOptions {
  readonly service: Service;
  /** Name of the client's service, or null for the tunnel's default service. */
  readonly serviceName: string | null;
  readonly now: () => number;
  readonly onBytes: (toClient: number, toVisitor: number) => void;
  /** Called for a waiting request if the service accepts fewer calls than expected. */
  readonly onExcess: (waiter: H2cUpstream) => void;
  readonly report: ReportInternalError;
}

/** State of a connection. `opening`: until the service has sent its HTTP/2 settings. `retiring`: calls in progress finish, no new calls. */
type State = 'opening' | 'open' | 'retiring' | 'closed';

const UNUSED: StreamReason = { code: 'cancelled', text: 'no longer needed' };
/** Name of h2c connections in reports of errors thrown by event handlers. */
const SCOPE = 'h2c.session';
const NOT_H2C = 'the service does not speak HTTP/2 without TLS (h2c)';

/** Number of consecutive checks after which a connection that is no longer read counts as dead. */
const DEAF_LOOKS = 3;

const { NGHTTP2_CANCEL } = constants;

const SESSION_OPTIONS = {
  maxSessionMemory: Math.ceil(EDGE_LIMITS.HTTP2_SESSION_MEMORY_BYTES / 1e6),
  maxHeaderListPairs: EDGE_LIMITS.HTTP2_FIELDS_MAX,
  settings: {
    enablePush: false,
    initialWindowSize: EDGE_LIMITS.HTTP2_STREAM_WINDOW_BYTES,
    maxHeaderListSize: EDGE_LIMITS.HTTP2_HEAD_MAX_BYTES,
  },
};

export class H2cConnection implements UpstreamAnswer {
  readonly #options: H2cConnectionOptions;
  #state: State = 'opening';
  #waiting: H2cUpstream[] = [];
  #session: ClientHttp2Session | null = null;
  /** Connection of the client on which the h2c connection's stream was requested. */
  readonly #askedOn: object | null;
  #stream: UpstreamStream | null = null;
  #duplex: StreamDuplex | null = null;
  #deafLooks = 0;
  #callsMax: number = H2C_STREAMS_PER_SESSION;
  /** Open calls as counted by Node. An abandoned call stays open until both sides have closed it. */
  #calls = 0;
  #callsEver = 0;
  /** Number of calls with a requester that still waits for the response. */
  #wantedCalls = 0;
  /** Time since which no requester waits on this h2c connection. Monotonic milliseconds. */
  #unusedSinceMs: number;

  constructor(options: H2cConnectionOptions) {
    this.#options = options;
    this.#askedOn = options.service.upstream.connection;
    this.#unusedSinceMs = options.now();
  }

  get state(): State {
    return this.#state;
  }

  /** True if the h2c connection has carried several calls. */
  get isReused(): boolean {
    return this.#callsEver > 1;
  }

  /** Number of calls in progress on the h2c connection and of requests waiting for it. */
  get load(): number {
    return this.#calls + this.#waiting.length;
  }

  get takesCalls(): boolean {
    // A closed session can stay open, because Node waits for calls that never end.
    if (this.#session?.closed === true || this.#isRetiring()) return false;
    return this.#state === 'opening' || this.#state === 'open';
  }

  /** Whether the client has reconnected, or its carrier is being replaced. New h2c calls then need a new stream. */
  #isRetiring(): boolean {
    return this.#stream === null
      ? this.#askedOn !== this.#options.service.upstream.connection
      : this.#stream.isRetiring;
  }

  /** Returns false if the tunnel was registered again and may have another service. Calls in progress finish. */
  isTo(service: Service): boolean {
    const isSame = service === this.#options.service;
    if (!isSame) this.#retire();
    return isSame;
  }

  get hasRoom(): boolean {
    return this.takesCalls && this.load < this.#callsMax;
  }

  start(): void {
    const { service, serviceName } = this.#options;
    const opening = service.upstream.open(streamHeadOf(service, serviceName), this);
    if (opening === null) this.#refuse(new Fault('TUNNEL_AWAY'));
  }

  /** Adds a request to the h2c connection. Calls its onConnected or onNotConnected exactly once. */
  take(waiter: H2cUpstream): void {
    if (this.#state === 'opening') this.#waiting.push(waiter);
    else if (this.#state === 'open') waiter.onConnected(this);
    else waiter.onNotConnected(new Fault('TUNNEL_AWAY'));
  }

  onOpened(stream: UpstreamStream): void {
    if (this.#state !== 'opening') return stream.reset(UNUSED);
    const duplex = new StreamDuplex(stream, this.#options.onBytes, this.#options.report);
    const session = connect('http://localhost', { ...SESSION_OPTIONS, createConnection: () => duplex });
    this.#stream = stream;
    this.#duplex = duplex;
    this.#session = session;
    guard.listen(session, 'remoteSettings', this, SCOPE, (settings: Settings) => this.#onSettings(settings));
    guard.listen(session, 'goaway', this, SCOPE, () => this.#retire());
    // Errors of the HTTP/2 session are reported to the calls by their streams.
    guard.listen(session, 'error', this, SCOPE, () => {});
    guard.listen(session, 'close', this, SCOPE, () => this.#onClosed());
  }

  /** Closes the connection after an internal error that concerns the connection, not a single call. The calls end with their streams. */
  abandon(error: unknown, where: string): void {
    try {
      this.#options.report(error, where);
    } finally {
      this.#stream?.reset(BROKEN);
      this.close();
    }
  }

  #onSettings({ maxConcurrentStreams = Number.POSITIVE_INFINITY }: Settings): void {
    this.#callsMax = Math.min(maxConcurrentStreams, H2C_STREAMS_PER_SESSION);
    if (this.#state !== 'opening') return;
    this.#state = 'open';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      try {
        // If the service accepts no h2c calls at all, the first request still waits in the queue of Node.js.
        if (this.#calls < Math.max(1, this.#callsMax)) waiter.onConnected(this);
        else this.#options.onExcess(waiter);
      } catch (error) {
        // An error ends only the affected call; the remaining calls continue to wait.
        waiter.abandon(error, 'h2c.connected');
      }
    }
  }

  #onClosed(): void {
    if (this.#state === 'opening') this.#refuse(new Fault('LOCAL_MALFORMED', { reason: NOT_H2C }));
    this.#state = 'closed';
  }

  onRefused(reason: StreamReason): void {
    this.#refuse(faultOfRefusal(reason));
  }

  #refuse(fault: Fault): void {
    this.#state = 'closed';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      try {
        waiter.onNotConnected(fault);
      } catch (error) {
        waiter.abandon(error, 'h2c.refused');
      }
    }
  }

  /** Starts a call on the h2c connection. Returns null if the connection has closed in the meantime. */
  request(
    headers: OutgoingHttpHeaders,
    options: { endStream: boolean; waitForTrailers: boolean },
  ): ClientHttp2Stream | null {
    const session = this.#session;
    if (session === null || session.destroyed || session.closed) return null;
    const stream = session.request(headers, options);
    this.#calls += 1;
    this.#callsEver += 1;
    this.#wantedCalls += 1;
    guard.listen(stream, 'close', this, 'h2c.call', () => {
      this.#calls -= 1;
    });
    return stream;
  }

  /** Records that a call's requester no longer waits. Called once per request. */
  leave(): void {
    this.#wantedCalls -= 1;
    this.#unusedSinceMs = this.#options.now();
  }

  /** Returns false if the h2c connection can be removed. Called once a second. */
  isKept(nowMs: number): boolean {
    this.#deafLooks = this.#isDeaf() ? this.#deafLooks + 1 : 0;
    if (this.#deafLooks === DEAF_LOOKS) this.close();
    const quietMs = nowMs - this.#unusedSinceMs;
    const isOld = quietMs >= H2C_SESSION_IDLE_MS;
    if (this.#state === 'opening') {
      // The connection opened, but the service never sent HTTP/2 settings. Requests that still wait are rejected.
      if (!isOld) return true;
      this.#refuse(new Fault('LOCAL_MALFORMED', { reason: NOT_H2C }));
      this.close();
    } else if (this.#wantedCalls === 0) {
      // A deadline applies, because a service that accepts nothing, or never closes, would keep the connection forever.
      const isLeft = this.#state === 'retiring' || this.#calls > 0;
      if (isLeft && quietMs >= H2C_LINGER_MS) this.close();
      else if (isOld || this.#isRetiring()) this.#retire();
    }
    return this.state !== 'closed';
  }

  /**
   * Whether the session has stopped reading: after an HTTP/2 error of the service, nghttp2 neither reads nor writes, and Node does not
   * report it. Node also stops reading while it waits to write, which is normal.
   */
  #isDeaf(): boolean {
    const duplex = this.#duplex;
    return duplex !== null && !duplex.destroyed && duplex.isPaused() && duplex.writableLength === 0;
  }

  #retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retiring';
    this.#unusedSinceMs = this.#options.now();
    this.#session?.close();
  }

  close(): void {
    if (this.#state === 'opening') this.#refuse(new Fault('TUNNEL_AWAY'));
    this.#state = 'closed';
    // The session is destroyed with an error. Otherwise Node ends calls in progress normally, and half a response would look complete.
    if (this.#session !== null && !this.#session.destroyed)
      this.#session.destroy(new Error(UNUSED.text), NGHTTP2_CANCEL);
    // Node would wait for the end of a write, which may never come.
    this.#duplex?.destroy();
  }
}

type H2cContext = Pick<UpstreamContext, 'now' | 'onBytes' | 'report'>;

/** Connections to the h2c services of all tunnels, by service. */
export class H2cConnections {
  readonly #context: H2cContext;
  readonly #byService = new Map<string, H2cConnection[]>();

  constructor(context: H2cContext) {
    this.#context = context;
  }

  /** Finds or opens a connection. Calls exactly one answer method of the waiter, synchronously or later. */
  take(service: Service, serviceName: string | null, waiter: H2cUpstream): void {
    const connections = this.#byService.get(serviceKeyOf(service, serviceName)) ?? [];
    const usable = connections.filter((connection) => connection.takesCalls && connection.isTo(service));
    const free = leastLoaded(usable.filter((connection) => connection.hasRoom));
    if (free !== null) free.take(waiter);
    else if (usable.length < H2C_SESSIONS_PER_TUNNEL) this.#open(service, serviceName, waiter);
    // Node.js queues calls above the service's limit of concurrent calls.
    else leastLoaded(usable)?.take(waiter);
  }

  #open(service: Service, serviceName: string | null, waiter: H2cUpstream): void {
    const connection = new H2cConnection({
      service,
      serviceName,
      now: this.#context.now,
      report: this.#context.report,
      onBytes: (toClient, toVisitor) => {
        service.counters.addBytes(toClient + toVisitor);
        this.#context.onBytes(toClient, toVisitor);
      },
      onExcess: (excess) => this.take(service, serviceName, excess),
    });
    const key = serviceKeyOf(service, serviceName);
    this.#byService.set(key, [...(this.#byService.get(key) ?? []), connection]);
    connection.take(waiter);
    connection.start();
  }

  /** Closes unused h2c connections. Called once a second. */
  sweep(nowMs: number): void {
    for (const [key, connections] of this.#byService) {
      const kept = connections.filter((connection) => this.#isKept(connection, nowMs));
      if (kept.length > 0) this.#byService.set(key, kept);
      else this.#byService.delete(key);
    }
  }

  #isKept(connection: H2cConnection, nowMs: number): boolean {
    try {
      return connection.isKept(nowMs);
    } catch (error) {
      connection.abandon(error, 'h2c.tick');
      return false;
    }
  }

  close(): void {
    for (const connections of this.#byService.values()) for (const connection of connections) connection.close();
    this.#byService.clear();
  }
}

const leastLoaded = (connections: readonly H2cConnection[]): H2cConnection | null => {
  let best: H2cConnection | null = null;
  for (const connection of connections) if (best === null || connection.load < best.load) best = connection;
  return best;
};
