// Keeps one session with the edge: connects, detects a lost connection, waits and reconnects. Knows nothing about tunnels.
import { Fault } from '@tunnel/errors';
import type { DatagramStream, DatagramWay, MuxStream, ReportInternalError } from '@tunnel/mux';
import type { ControlMessage, StreamHead, StreamReason } from '@tunnel/protocol';
import type { Clock, Logger, Secret, Timer } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import { Backoff } from '../network/backoff.ts';
import { AttemptFailed, authenticate, type Credentials } from './authenticate.ts';
import { dialControl } from './control-dialer.ts';
import { ControlLink } from './control-link.ts';
import type { Endpoint } from './dial-socket.ts';
import { Session, type SessionEnd } from './session.ts';
import { TlsSession } from './tls-session.ts';

/** Pause before the client offers the proxy a rejected password again. */
const PROXY_AUTH_RETRY_MS = 60_000;
/** Maximum number of earlier sessions kept open after a reconnect until their streams have finished. */
const RETIRED_SESSIONS_MAX = 8;

export interface ConnectionSettings {
  readonly endpoint: Endpoint;
  readonly token: Secret;
  readonly wait: boolean;
  readonly agent: string;
  /** Name of the client's computer. Undefined if the computer has no name. */
  readonly clientName: string | undefined;
  readonly logger: Logger;
  /** Reports internal errors of the client. An internal error ends only the affected visitor connection or carrier. */
  readonly report: ReportInternalError;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface Wait {
  readonly attempt: number;
  readonly delayMs: number;
  readonly fault: Fault;
  /** True if the edge announced in advance that it shuts down. */
  readonly planned: boolean;
}

export interface ConnectionHandlers {
  /** Returns id and secret of the session to resume, or null for a new session. */
  resume(): Credentials['resume'];
  /** Called once the edge has accepted the credentials, before any carrier is open. */
  onAuthenticated(session: { readonly id: string; readonly secret: string; readonly resumed: boolean }): void;
  onUp(session: Session): void;
  /** Called when the current session with the edge has ended or is about to end. */
  onDown(): void;
  onWaiting(wait: Wait): void;
  onMessage(message: ControlMessage): void;
  onStream(stream: MuxStream, head: StreamHead): void;
  onDatagramStream(stream: DatagramStream, head: StreamHead): void;
  onDatagramWay(way: DatagramWay): void;
  /** Called on an error that a retry cannot fix. The last event of the connection. */
  onFatal(fault: Fault): void;
}

type Phase =
  | { readonly kind: 'connecting'; readonly abort: AbortController }
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'up'; readonly session: Session }
  | { readonly kind: 'stopped' };

export type ConnectionState = Phase['kind'];

export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #handlers: ConnectionHandlers;
  readonly #backoff: Backoff;
  readonly #retired = new RetiredSessions();
  #phase: Phase = { kind: 'stopped' };
  #everUp = false;
  /** TLS session of the last control connection. Carriers and reconnects resume the session. */
  readonly #tlsSession: TlsSession;

  constructor(settings: ConnectionSettings, handlers: ConnectionHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#backoff = new Backoff(settings.clock, settings.random);
    this.#tlsSession = new TlsSession(settings.clock);
  }

  /** The current session with the edge. Null unless the connection is up. */
  get session(): Session | null {
    return this.#phase.kind === 'up' ? this.#phase.session : null;
  }

  get state(): ConnectionState {
    return this.#phase.kind;
  }

  start(): void {
    void this.#attempt();
  }

  tick(now: number): void {
    if (this.#phase.kind === 'up') this.#phase.session.tick(now);
    this.#retired.tick(now);
  }

  /** Aborts the current attempt and starts no more. Returns the session that was up; the caller must end it. */
  stop(): Session | null {
    const phase = this.#phase;
    this.#phase = { kind: 'stopped' };
    if (phase.kind === 'waiting') phase.timer.cancel();
    if (phase.kind === 'connecting') phase.abort.abort(new Fault('CLIENT_CLOSED'));
    if (phase.kind !== 'up') return null;
    // From now on the session is ticked as a retired session, until the last stream has ended.
    this.#retired.add(phase.session, 'the client is stopping');
    return phase.session;
  }

  /** Cuts off streams still running on earlier sessions. Called after stop(). */
  closeRetired(reason: StreamReason): void {
    this.#retired.closeAll(reason);
  }

  async #attempt(): Promise<void> {
    const abort = new AbortController();
    this.#phase = { kind: 'connecting', abort };
    try {
      const session = await this.#connect(abort.signal);
      if (abort.signal.aborted) return session.close({ code: 'shutting-down', text: 'the client is stopping' });
      this.#phase = { kind: 'up', session };
      this.#everUp = true;
      this.#backoff.connected();
      this.#handlers.onUp(session);
    } catch (error) {
      if (abort.signal.aborted) return;
      const failure = this.#asFailure(error);
      if (failure.final) this.#fatal(failure.fault);
      else this.#wait(failure.fault, { planned: false, atLeastMs: failure.retryAfterMs });
    }
  }

  async #connect(signal: AbortSignal): Promise<Session> {
    const { endpoint, clock, logger, report, agent, clientName, random, token } = this.#settings;
    const wrap = (socket: ConstructorParameters<typeof ControlLink>[0], remoteAddress: string): ControlLink =>
      new ControlLink(socket, { clock, logger, remoteAddress });
    const tlsSession = this.#tlsSession;
    const link = await dialControl(endpoint, { clock, agent, signal, wrap, tlsSession });
    const onAbort = (): void => link.drop(new Fault('CLIENT_CLOSED'));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const hello = await authenticate(link, { token, agent, clientName, resume: this.#handlers.resume() }, clock);
      const { session_id: id, resume_secret: secret, resumed } = hello;
      this.#handlers.onAuthenticated({ id, secret, resumed });
      const session: Session = new Session({
        link,
        hello,
        endpoint,
        tlsSession,
        agent,
        clock,
        random,
        logger,
        report,
        handlers: {
          onMessage: (message) => this.#isCurrent(session) && this.#handlers.onMessage(message),
          onStream: (stream, head) => this.#handlers.onStream(stream, head),
          onDatagramStream: (stream, head) => this.#handlers.onDatagramStream(stream, head),
          onDatagramWay: (way) => this.#isCurrent(session) && this.#handlers.onDatagramWay(way),
          onShuttingDown: () => this.#onEnd(session, { fault: new Fault('EDGE_SHUTTING_DOWN'), final: false }, true),
          onEnd: (end) => this.#onEnd(session, end, false),
        },
      });
      await session.start().catch((error: unknown) => {
        session.close({ code: 'shutting-down', text: 'the session was not established' });
        throw error;
      });
      return session;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Converts an error into AttemptFailed. Before the first success a non-retryable dial error is final; later the cause may be temporary,
   * so the client retries.
   */
  #asFailure(error: unknown): AttemptFailed {
    if (error instanceof AttemptFailed) return error;
    const fault = Fault.from(error);
    // A slow retry, because a proxy may lock out a user after too many attempts with an outdated password.
    const retryAfterMs = fault.code === 'CLIENT_PROXY_AUTH' ? PROXY_AUTH_RETRY_MS : 0;
    return new AttemptFailed(fault, { final: !this.#everUp && !fault.retryable, retryAfterMs });
  }

  #isCurrent(session: Session): boolean {
    return this.#phase.kind === 'up' && this.#phase.session === session;
  }

  /** Handles the end of a session. Compares sessions by identity, so that the late end of an earlier session changes nothing. */
  #onEnd(session: Session, end: SessionEnd, planned: boolean): void {
    if (!this.#isCurrent(session)) return;
    this.#retired.add(session, end.fault.message);
    this.#phase = { kind: 'stopped' };
    this.#handlers.onDown();
    if (end.final) this.#fatal(end.fault);
    else this.#wait(end.fault, { planned, atLeastMs: 0 });
  }

  #wait(fault: Fault, { planned, atLeastMs }: { planned: boolean; atLeastMs: number }): void {
    const backoffMs = this.#backoff.nextDelayMs();
    // If the first connection to the edge has a deadline, the pause is capped so that the client does not sleep past the deadline.
    const hasDeadline = !this.#everUp && !this.#settings.wait;
    const delayMs = Math.max(
      hasDeadline ? Math.min(backoffMs, CLIENT_LIMITS.FIRST_CONNECT_RETRY_MAX_MS) : backoffMs,
      atLeastMs,
    );
    const timer = this.#settings.clock.setTimeout(() => void this.#attempt(), delayMs);
    this.#phase = { kind: 'waiting', timer };
    this.#handlers.onWaiting({ attempt: this.#backoff.failures, delayMs, fault, planned });
  }

  #fatal(fault: Fault): void {
    this.#phase = { kind: 'stopped' };
    this.#handlers.onFatal(fault);
  }
}

/** Sessions replaced by a newer session. They accept no new streams and are closed when their last stream has ended. */
class RetiredSessions {
  readonly #sessions = new Set<Session>();

  add(session: Session, reason: string): void {
    session.retire(reason);
    this.#sessions.add(session);
    // Closes the oldest of the earlier sessions, so that a flapping client cannot accumulate connections.
    const [oldest] = this.#sessions;
    if (this.#sessions.size > RETIRED_SESSIONS_MAX && oldest !== undefined) {
      this.#close(oldest, { code: 'limit', text: 'too many lost connections with open streams' });
    }
  }

  tick(now: number): void {
    for (const session of [...this.#sessions]) {
      session.tick(now);
      if (session.isSpent) this.#close(session, { code: 'shutting-down', text: 'the session has ended' });
    }
  }

  closeAll(reason: StreamReason): void {
    for (const session of [...this.#sessions]) this.#close(session, reason);
  }

  #close(session: Session, reason: StreamReason): void {
    this.#sessions.delete(session);
    session.close(reason);
  }
}
