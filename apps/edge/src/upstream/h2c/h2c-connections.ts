// Connections to local services that speak HTTP/2 in clear: each a stream of the tunnel's session with node's client over it; shared by the
// calls of a tunnel, few, and closed when nobody needs them.
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

/** connections to one local service that speaks HTTP/2; further calls share them */
const H2C_SESSIONS_PER_TUNNEL = 16;
/** calls on one such connection before another one is opened */
const H2C_STREAMS_PER_SESSION = 100;
/** how long such a connection waits for the next call */
export const H2C_SESSION_IDLE_MS = 60_000;
/** Time that a service has to close an unused h2c connection or call before the edge cuts it. */
export const H2C_LINGER_MS = 5_000;

export interface H2cConnectionOptions {
  readonly service: Service;
  /** One of the client's services by name; null: the tunnel's own. */
  readonly serviceName: string | null;
  readonly now: () => number;
  readonly onBytes: (toClient: number, toVisitor: number) => void;
  /** It has less room than was thought. */
  readonly onExcess: (waiter: H2cUpstream) => void;
  readonly report: ReportInternalError;
}

/** `opening`: until the service has said in HTTP/2 what it takes. `retiring`: calls under way finish, no new ones. */
type State = 'opening' | 'open' | 'retiring' | 'closed';

const UNUSED: StreamReason = { code: 'cancelled', text: 'no longer needed' };
/** Of what node tells of a connection. */
const SCOPE = 'h2c.session';
const NOT_H2C = 'the service does not speak HTTP/2 without TLS (h2c)';

/** Looks in a row at a connection that is not read any more, before it is taken for over. */
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
  readonly #given: H2cConnectionOptions;
  #state: State = 'opening';
  #waiting: H2cUpstream[] = [];
  #session: ClientHttp2Session | null = null;
  /** Of the client, which the stream was asked for on. */
  readonly #askedOn: object | null;
  #stream: UpstreamStream | null = null;
  #duplex: StreamDuplex | null = null;
  #deafLooks = 0;
  #callsMax: number = H2C_STREAMS_PER_SESSION;
  /** As node sees them: one that nobody listens to any more stays until both sides are done with it. */
  #calls = 0;
  #callsEver = 0;
  /** Somebody waits for their answers. */
  #wantedCalls = 0;
  /** Since when nobody waits for anything of it. */
  #unusedSinceMs: number;

  constructor(options: H2cConnectionOptions) {
    this.#given = options;
    this.#askedOn = options.service.upstream.connection;
    this.#unusedSinceMs = options.now();
  }

  get state(): State {
    return this.#state;
  }

  /** More than one call went over it. */
  get isReused(): boolean {
    return this.#callsEver > 1;
  }

  /** Calls under way, and those that wait for the connection. */
  get load(): number {
    return this.#calls + this.#waiting.length;
  }

  get takesCalls(): boolean {
    // Closed, and yet open: node waits for calls that never end.
    if (this.#session?.closed === true || this.#isRetiring()) return false;
    return this.#state === 'opening' || this.#state === 'open';
  }

  /** The client has come back on another connection, or its carrier is being replaced: a new call opens a stream of its own. */
  #isRetiring(): boolean {
    return this.#stream === null ? this.#askedOn !== this.#given.service.upstream.connection : this.#stream.isRetiring;
  }

  /** false: the tunnel was registered anew meanwhile, and may lead to another service. What runs here finishes. */
  isTo(service: Service): boolean {
    const isSame = service === this.#given.service;
    if (!isSame) this.#retire();
    return isSame;
  }

  get hasRoom(): boolean {
    return this.takesCalls && this.load < this.#callsMax;
  }

  start(): void {
    const { service, serviceName } = this.#given;
    const opening = service.upstream.open(streamHeadOf(service, serviceName), this);
    if (opening === null) this.#refuse(new Fault('TUNNEL_AWAY'));
  }

  /** onConnected or onNotConnected of the request follows, once. */
  take(waiter: H2cUpstream): void {
    if (this.#state === 'opening') this.#waiting.push(waiter);
    else if (this.#state === 'open') waiter.onConnected(this);
    else waiter.onNotConnected(new Fault('TUNNEL_AWAY'));
  }

  onOpened(stream: UpstreamStream): void {
    if (this.#state !== 'opening') return stream.reset(UNUSED);
    const duplex = new StreamDuplex(stream, this.#given.onBytes, this.#given.report);
    const session = connect('http://localhost', { ...SESSION_OPTIONS, createConnection: () => duplex });
    this.#stream = stream;
    this.#duplex = duplex;
    this.#session = session;
    guard.listen(session, 'remoteSettings', this, SCOPE, (settings: Settings) => this.#onSettings(settings));
    guard.listen(session, 'goaway', this, SCOPE, () => this.#retire());
    // Told to each call by its own stream.
    guard.listen(session, 'error', this, SCOPE, () => {});
    guard.listen(session, 'close', this, SCOPE, () => this.#onClosed());
  }

  /** Something of the connection itself, not of one call: the calls hear of it by the ends of their streams. */
  abandon(error: unknown, where: string): void {
    try {
      this.#given.report(error, where);
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
        // One that takes none at all lets the first wait for its turn.
        if (this.#calls < Math.max(1, this.#callsMax)) waiter.onConnected(this);
        else this.#given.onExcess(waiter);
      } catch (error) {
        // One call, not the others that wait with it.
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

  /** null: the connection has ended meanwhile. */
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

  /** Once for each request: nobody listens to that call any more. */
  leave(): void {
    this.#wantedCalls -= 1;
    this.#unusedSinceMs = this.#given.now();
  }

  /** Once a second. false: it may be forgotten. */
  isKept(nowMs: number): boolean {
    this.#deafLooks = this.#isDeaf() ? this.#deafLooks + 1 : 0;
    if (this.#deafLooks === DEAF_LOOKS) this.close();
    const quietMs = nowMs - this.#unusedSinceMs;
    const isOld = quietMs >= H2C_SESSION_IDLE_MS;
    if (this.#state === 'opening') {
      // Connected, and then silence: those who waited have given up by now, or do so here.
      if (!isOld) return true;
      this.#refuse(new Fault('LOCAL_MALFORMED', { reason: NOT_H2C }));
      this.close();
    } else if (this.#wantedCalls === 0) {
      // A service that takes nothing any more, or never closes, would keep it for ever.
      const isLeft = this.#state === 'retiring' || this.#calls > 0;
      if (isLeft && quietMs >= H2C_LINGER_MS) this.close();
      else if (isOld || this.#isRetiring()) this.#retire();
    }
    return this.state !== 'closed';
  }

  /**
   * After an error of the service's in HTTP/2 nghttp2 neither reads nor writes any more, and node says nothing. It also stops to
   * read while it waits to write, and that is well.
   */
  #isDeaf(): boolean {
    const duplex = this.#duplex;
    return duplex !== null && !duplex.destroyed && duplex.isPaused() && duplex.writableLength === 0;
  }

  #retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retiring';
    this.#unusedSinceMs = this.#given.now();
    this.#session?.close();
  }

  close(): void {
    if (this.#state === 'opening') this.#refuse(new Fault('TUNNEL_AWAY'));
    this.#state = 'closed';
    // With an error: without one node ends the calls under way, and half of a response would look whole.
    if (this.#session !== null && !this.#session.destroyed)
      this.#session.destroy(new Error(UNUSED.text), NGHTTP2_CANCEL);
    // By itself node waits for the end of a write, which may never come.
    this.#duplex?.destroy();
  }
}

type H2cContext = Pick<UpstreamContext, 'now' | 'onBytes' | 'report'>;

/** Of all tunnels, by the service that they lead to. */
export class H2cConnections {
  readonly #context: H2cContext;
  readonly #byService = new Map<string, H2cConnection[]>();

  constructor(context: H2cContext) {
    this.#context = context;
  }

  /** Exactly one of the waiter's answers comes, at once or later. */
  take(service: Service, serviceName: string | null, waiter: H2cUpstream): void {
    const connections = this.#byService.get(serviceKeyOf(service, serviceName)) ?? [];
    const usable = connections.filter((connection) => connection.takesCalls && connection.isTo(service));
    const free = leastLoaded(usable.filter((connection) => connection.hasRoom));
    if (free !== null) free.take(waiter);
    else if (usable.length < H2C_SESSIONS_PER_TUNNEL) this.#open(service, serviceName, waiter);
    // node lets what is over the service's bound wait for its turn.
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

  /** Once a second. */
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
