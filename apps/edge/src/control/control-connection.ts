// WebSocket of a client. Frames are handled in order and one at a time, limited by the connection's rate; the first frame must be Auth.
// Silent, slow and unauthenticated connections are closed. Registrations have a separate queue, so that pings and health reports never wait
// behind registrations.

import { Fault } from '@tunnel/errors';
import { type Guarded, guard, type ReportInternalError } from '@tunnel/mux';
import {
  CLOSE_CODES,
  type ControlMessage,
  type ControlMessageInput,
  decodeControl,
  encodeControl,
  type MessageOf,
  WIRE_LIMITS,
} from '@tunnel/protocol';
import { type ConnectionState } from '@tunnel/rules/admission';
import { judgeLiveness } from '@tunnel/rules/rate';
import type { Clock, LogLimiter, Timer } from '@tunnel/runtime';
import type { RawData, WebSocket } from 'ws';
import type { ControlRateLimiter, FrameVerdict } from './control-rate-limiter.rules.ts';
import { CONTROL_FRAMES_PER_TURN, FrameWeights, SIGNAL_WEIGHT } from './frame-weights.ts';
import { RegistrationTurns } from './registration-turns.ts';

/** Time to wait for the response to a close frame before the socket is destroyed. */
const CONTROL_CLOSE_TIMEOUT_MS = 2000;
/**
 * Characters after which a frame counts as one more frame of the current event-loop turn, so that only a few long frames are handled per
 * turn.
 */
const CONTROL_FRAME_CHARS_IN_TURN = 512;
/** Queued bytes above which a client gets no optional messages, such as requests answered by the edge. */
const CONTROL_OFFERS_QUEUE_BYTES = 64 * 1024;

export interface ControlPeer {
  /** IP address used for rate limits: without a port, and IPv4 instead of an IPv4-mapped IPv6 address. */
  readonly address: string;
  /** IP address and port of the client, for logs and screens. */
  readonly clientAddr: string;
}

export interface ControlHandlers {
  /** Handles Auth. Resolves to false if the connection was rejected and is closed already. */
  onAuth(connection: ControlConnection, message: MessageOf<'Auth'>): Promise<boolean>;
  /**
   * Handles a message. While the returned promise is pending, no further frame is read. A pending registration delays only further
   * registrations.
   */
  onMessage(connection: ControlConnection, message: ControlMessage): Promise<void> | void;
  /** Called when a control connection has exceeded its frame rate and reading pauses. */
  onHeldBack(connection: ControlConnection): void;
  /** Called once when the connection closes, regardless of which side closed it. No callback follows. */
  onLost(connection: ControlConnection): void;
}

export interface ControlConnectionOptions {
  readonly id: number;
  readonly ws: WebSocket;
  readonly peer: ControlPeer;
  readonly clock: Clock;
  readonly log: LogLimiter;
  readonly handlers: ControlHandlers;
  readonly pace: ControlRateLimiter;
  readonly registrationPace: ControlRateLimiter;
  readonly report: ReportInternalError;
}

const LIVENESS = { pingEveryMs: WIRE_LIMITS.CONTROL_PING_INTERVAL_MS, deadAfterMs: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS };

type Phase = 'awaiting-auth' | 'open' | 'closed';

/** Name of control connections in reports of errors thrown by event handlers. */
const SCOPE = 'control';

export class ControlConnection implements Guarded {
  readonly id: number;
  readonly peer: ControlPeer;
  /** Resolves when the control connection's socket is closed. */
  readonly whenGone: Promise<void>;
  readonly #ws: WebSocket;
  readonly #clock: Clock;
  readonly #log: LogLimiter;
  readonly #handlers: ControlHandlers;
  readonly #pace: ControlRateLimiter;
  readonly #weights = new FrameWeights();
  readonly #registrations: RegistrationTurns;
  readonly #report: ReportInternalError;
  #phase: Phase = 'awaiting-auth';
  /**
   * Frames read but not handled yet; null for a binary frame. Holds at most a single socket read (64 KiB). Stored as strings, because 64
   * KiB can hold thousands of tiny frames and objects would take many times the memory.
   */
  readonly #waiting: (string | null)[] = [];
  /** WebSocket pings and pongs not yet charged to the rate limit. */
  #signals = 0;
  /** Payload of the latest ping. A single pong answers all earlier pings as well (RFC 6455, 5.5.3). */
  #pingToAnswer: Buffer | null = null;
  /** True while a handler processes a message of the control connection. */
  #isBusy = false;
  /** Set while the control connection has no token and is not read. */
  #heldBack: Timer | null = null;
  /** Set while the control connection waits for the next event-loop turn, because other connections have to get theirs. */
  #turn: NodeJS.Immediate | null = null;
  #framesAfterClose = 0;
  #lastHeardAt: number;
  #lastPingAt: number;
  /** Time of the last message to the client. Excludes WebSocket pongs, because a client may judge the edge by messages only. */
  #lastSentAt: number;
  #pings = 0;
  #timer: Timer;

  constructor({ id, ws, peer, clock, log, handlers, pace, registrationPace, report }: ControlConnectionOptions) {
    this.id = id;
    this.peer = peer;
    this.#ws = ws;
    this.#clock = clock;
    this.#log = log;
    this.#handlers = handlers;
    this.#pace = pace;
    this.#report = report;
    this.#registrations = new RegistrationTurns({
      clock,
      pace: registrationPace,
      handle: (message) => handlers.onMessage(this, message),
      onRoom: () => this.#goOn(),
      onError: (error) => this.#fail(error),
    });
    this.#lastHeardAt = clock.monotonic();
    this.#lastPingAt = this.#lastHeardAt;
    this.#lastSentAt = this.#lastHeardAt;
    this.#timer = this.#after(WIRE_LIMITS.CONTROL_AUTH_TIMEOUT_MS, () => this.#authTimedOut());
    guard.listen(ws, 'message', this, SCOPE, (data: RawData, isBinary: boolean) => this.#hear(data, isBinary));
    guard.listen(ws, 'ping', this, SCOPE, (data: Buffer) => this.#hearSignal(data));
    guard.listen(ws, 'pong', this, SCOPE, () => this.#hearSignal(null));
    // The ws library closes the socket after an error, for example a frame above the size limit (1009) or an invalid frame (1002).
    guard.listen(ws, 'error', this, SCOPE, (error: Error) =>
      this.#log.log(
        'debug',
        'control-socket',
        { client: peer.clientAddr, reason: error.message },
        'control socket error',
      ),
    );
    // Registered without the guard for exceptions, because the edge's shutdown waits for this promise.
    this.whenGone = new Promise((resolve) => ws.on('close', () => resolve()));
    guard.listen(ws, 'close', this, SCOPE, () => this.#closed());
  }

  /** Closes the connection after an internal error. The client is notified and reconnects; its tunnels are held meanwhile. */
  abandon(error: unknown, where: string): void {
    try {
      this.#report(error, where);
      this.fail(new Fault('INTERNAL'));
    } catch {
      this.terminate();
    }
  }

  #after(ms: number, act: () => void): Timer {
    return this.#clock.setTimeout(() => {
      try {
        act();
      } catch (error) {
        this.abandon(error, 'control.timer');
      }
    }, ms);
  }

  get isOpen(): boolean {
    return this.#phase !== 'closed';
  }

  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  describe(): ConnectionState {
    return { phase: this.#phase, waitsFor: this.#waitsFor };
  }

  get #waitsFor(): string {
    if (this.#heldBack !== null || this.#registrations.isFull) return 'the frame rate limit';
    if (this.#phase === 'awaiting-auth') return 'Auth';
    return this.#isBusy ? 'frame being handled' : 'frames';
  }

  send(message: ControlMessageInput): void {
    if (this.#phase === 'closed') return;
    this.#ws.send(encodeControl(message));
    this.#lastSentAt = this.#clock.monotonic();
    if (this.#ws.bufferedAmount > WIRE_LIMITS.CONTROL_SEND_QUEUE_MAX_BYTES)
      this.close(CLOSE_CODES.slow, 'CONTROL_SLOW');
  }

  /** Sends an optional message. Returns false if the client has not read earlier messages; the message is then dropped. */
  offer(message: ControlMessageInput): boolean {
    if (this.#phase !== 'open' || this.#ws.bufferedAmount > CONTROL_OFFERS_QUEUE_BYTES) return false;
    this.send(message);
    return true;
  }

  sendFault(fault: Fault): void {
    this.send({ type: 'Error', code: fault.code, message: fault.message, retryable: fault.retryable, fatal: false });
  }

  /** Ends the session with an error. The client reconnects only if the fault is retryable. */
  fail(fault: Fault): void {
    this.send({ type: 'Error', code: fault.code, message: fault.message, retryable: fault.retryable, fatal: true });
    this.close(CLOSE_CODES.fatal, fault.code);
  }

  refuseAuth(fault: Fault, retryAfterSecs?: number): void {
    this.send({
      type: 'AuthError',
      code: fault.code,
      message: fault.message,
      retryable: fault.retryable,
      ...(retryAfterSecs === undefined ? {} : { retry_after_secs: retryAfterSecs }),
    });
    this.close(CLOSE_CODES.authRefused, fault.code);
  }

  close(code: number, reason: string): void {
    if (this.#phase === 'closed') return;
    // A paused socket would not read the response to the close frame. A client paused by the rate limit has more data queued than the edge
    // reads: it can receive the close frame until the timeout, but its response is not awaited.
    if (this.#heldBack === null && !this.#registrations.isFull) this.#ws.resume();
    this.#ws.close(code, reason);
    const timer = this.#clock.setTimeout(() => this.#ws.terminate(), CONTROL_CLOSE_TIMEOUT_MS);
    this.#ws.once('close', () => timer.cancel());
    this.#closed();
  }

  terminate(): void {
    this.#ws.terminate();
    this.#closed();
  }

  #closed(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#timer.cancel();
    this.#heldBack?.cancel();
    if (this.#turn !== null) clearImmediate(this.#turn);
    this.#waiting.length = 0;
    this.#signals = 0;
    this.#registrations.stop();
    this.#handlers.onLost(this);
  }

  #heard(): void {
    this.#lastHeardAt = this.#clock.monotonic();
  }

  #hear(data: RawData, isBinary: boolean): void {
    if (this.#phase === 'closed') return this.#hearAfterClose();
    this.#heard();
    this.#waiting.push(isBinary ? null : textOf(data));
    this.#work();
  }

  #hearSignal(ping: Buffer | null): void {
    if (this.#phase === 'closed') return this.#hearAfterClose();
    this.#heard();
    this.#signals += 1;
    // Copies the payload, because a slice would keep the whole socket read in memory.
    if (ping !== null) this.#pingToAnswer = Buffer.from(ping);
    this.#work();
  }

  /**
   * Counts frames after the edge's close frame, while the socket is read only for the client's response. Cuts off a client that keeps
   * sending.
   */
  #hearAfterClose(): void {
    this.#framesAfterClose += 1;
    if (this.#framesAfterClose > CONTROL_FRAMES_PER_TURN) this.#ws.terminate();
  }

  // ---- handlers run in the order of their frames; a frame that takes time or has no token holds up the socket, not memory ----

  #work(): void {
    while (!this.#isBusy && !this.#isPaced && (this.#signals > 0 || this.#waiting.length > 0)) {
      const verdict = this.#pace.next(this.#clock.monotonic());
      if (verdict.kind !== 'take') return this.#holdBack(verdict);
      if (this.#signals > 0) this.#takeSignal();
      else this.#take(this.#waiting.shift() as string | null);
    }
    if (this.#isBusy || this.#isPaced || this.#registrations.isFull) return;
    if (this.#phase === 'closed' || !this.#ws.isPaused) return;
    // Frames sent during the pause are still in the socket, so the silence timeout restarts here.
    this.#heard();
    this.#ws.resume();
  }

  /** True while the rate limit pauses reading. */
  get #isPaced(): boolean {
    return this.#heldBack !== null || this.#turn !== null;
  }

  #holdBack(verdict: Exclude<FrameVerdict, { kind: 'take' }>): void {
    this.#ws.pause();
    if (verdict.kind === 'next-turn') {
      this.#turn = setImmediate(() => this.#turnOver());
      return;
    }
    this.#heldBack = this.#clock.setTimeout(() => {
      this.#heldBack = null;
      this.#goOn();
    }, verdict.ms);
    this.#handlers.onHeldBack(this);
  }

  #turnOver(): void {
    this.#turn = null;
    this.#pace.turnOver();
    this.#goOn();
  }

  /** Processes queued messages from timers, where no caller would catch an error. */
  #goOn(): void {
    try {
      this.#work();
    } catch (error) {
      this.abandon(error, 'control.frame');
    }
  }

  #takeSignal(): void {
    this.#pace.charge(SIGNAL_WEIGHT, this.#clock.monotonic());
    this.#signals -= 1;
    if (this.#signals > 0 || this.#pingToAnswer === null) return;
    this.#ws.pong(this.#pingToAnswer);
    this.#pingToAnswer = null;
  }

  #take(text: string | null): void {
    const pending = this.#receive(text);
    if (pending === undefined) return;
    this.#isBusy = true;
    // Reading is not paused after a close, because the client's response to the close frame has to be read.
    if (this.isOpen) this.#ws.pause();
    void pending
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        this.#isBusy = false;
        this.#work();
      })
      .catch((error: unknown) => this.abandon(error, 'control.frame'));
  }

  #fail(error: unknown): void {
    if (error instanceof Fault) this.fail(error);
    else this.abandon(error, 'control.frame');
  }

  #receive(text: string | null): Promise<void> | void {
    const decoded = text === null ? refusedBinary() : decodeControl(text);
    const characters = text?.length ?? 0;
    const inTurn = 1 + Math.floor(characters / CONTROL_FRAME_CHARS_IN_TURN);
    this.#pace.charge(this.#weights.of(decoded, characters), this.#clock.monotonic(), inTurn);
    if (!decoded.ok) return this.#refuseFrame(decoded.fault);
    const { message } = decoded;
    if (message.type === 'Ping') return this.send({ type: 'Pong', id: message.id });
    if (this.#phase === 'open') return this.#handle(message, characters);
    if (message.type === 'Auth') return this.#authenticate(message);
    this.refuseAuth(new Fault('CONTROL_NOT_AUTHENTICATED'));
  }

  #handle(message: ControlMessage, characters: number): Promise<void> | void {
    const waits =
      message.type === 'RegisterTunnel' || (message.type === 'UnregisterTunnel' && !this.#registrations.isIdle);
    if (!waits) return this.#handlers.onMessage(this, message);
    const wasFull = this.#registrations.isFull;
    this.#registrations.add(message, characters);
    if (wasFull || !this.#registrations.isFull || !this.isOpen) return;
    this.#ws.pause();
    this.#handlers.onHeldBack(this);
  }

  async #authenticate(message: MessageOf<'Auth'>): Promise<void> {
    this.#timer.cancel();
    if (!(await this.#handlers.onAuth(this, message)) || this.#phase === 'closed') return;
    this.#phase = 'open';
    this.#watch();
  }

  #refuseFrame(fault: Fault): void {
    this.sendFault(fault);
    const isStranger = this.#phase === 'awaiting-auth' && fault.code !== 'CONTROL_UNKNOWN_FRAME';
    if (isStranger) this.close(CLOSE_CODES.badFrame, fault.code);
  }

  #authTimedOut(): void {
    this.#timeOut(new Fault('CONTROL_AUTH_TIMEOUT', { seconds: WIRE_LIMITS.CONTROL_AUTH_TIMEOUT_MS / 1000 }));
  }

  #timeOut(fault: Fault): void {
    this.sendFault(fault);
    this.close(CLOSE_CODES.dead, fault.code);
  }

  /** Sets a single timer for the next deadline, so that a dead connection is detected on time instead of at the next tick. */
  #watch(): void {
    // A client does not count as silent while the edge does not read from it or still handles its registrations. If the client is gone,
    // pings to it fail.
    if (this.#ws.isPaused || !this.#registrations.isIdle) this.#heard();
    const now = this.#clock.monotonic();
    // A ping of the client and its answer keep both sides alive, so the edge pings only if one direction was silent for an interval.
    const servedAt = Math.max(this.#lastPingAt, Math.min(this.#lastHeardAt, this.#lastSentAt));
    const verdict = judgeLiveness({ lastHeardAt: this.#lastHeardAt, lastPingAt: servedAt }, now, LIVENESS);
    if (verdict === 'dead') {
      this.#timeOut(new Fault('CONTROL_DEAD', { seconds: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS / 1000 }));
      return;
    }
    if (verdict === 'ping-due') {
      this.#pings += 1;
      this.#lastPingAt = now;
      this.send({ type: 'Ping', id: this.#pings });
    }
    if (!this.isOpen) return;
    const pingAt = verdict === 'ping-due' ? now : servedAt;
    const dueAt = Math.min(pingAt + LIVENESS.pingEveryMs, this.#lastHeardAt + LIVENESS.deadAfterMs);
    this.#timer = this.#after(dueAt - now, () => this.#watch());
  }
}

const refusedBinary = () => ({ ok: false, fault: new Fault('CONTROL_BAD_FRAME', { reason: 'binary frame' }) }) as const;

/** Decodes a message as text. The ws library delivers a Buffer by default. */
const textOf = (data: RawData): string => (data as Buffer).toString('utf8');
