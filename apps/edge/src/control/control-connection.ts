// One WebSocket of a client: frames in order, one at a time; the first must be Auth; silence, slowness and strangers are closed.
import { judgeLiveness } from '@tunnel/core';
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
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { RawData, WebSocket } from 'ws';
import { EDGE_LIMITS } from '../limits.ts';

export interface ControlPeer {
  /** The address that limits count: without a port, IPv4 as such. */
  readonly address: string;
  /** host:port, for people. */
  readonly clientAddr: string;
}

export interface ControlHandlers {
  /** false: refused, and the connection is closed already. */
  onAuth(connection: ControlConnection, message: MessageOf<'Auth'>): Promise<boolean>;
  /** While a promise is under way no further frame is read. */
  onMessage(connection: ControlConnection, message: ControlMessage): Promise<void> | void;
  /** Once, whoever closed; nothing follows. */
  onLost(connection: ControlConnection): void;
}

export interface ControlConnectionOptions {
  readonly id: number;
  readonly ws: WebSocket;
  readonly peer: ControlPeer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly handlers: ControlHandlers;
  readonly report: ReportInternalError;
}

const LIVENESS = { pingEveryMs: WIRE_LIMITS.CONTROL_PING_INTERVAL_MS, deadAfterMs: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS };

type Phase = 'awaiting-auth' | 'open' | 'closed';

/** Of what the WebSocket tells. */
const SCOPE = 'control';

export class ControlConnection implements Guarded {
  readonly id: number;
  readonly peer: ControlPeer;
  /** Settles when the socket is closed for good. */
  readonly whenGone: Promise<void>;
  readonly #ws: WebSocket;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #handlers: ControlHandlers;
  readonly #report: ReportInternalError;
  #phase: Phase = 'awaiting-auth';
  /** Frames that were read before the one under way was done; no more than one read of the socket holds. */
  readonly #waiting: (() => Promise<void> | void)[] = [];
  #isBusy = false;
  #lastHeardAt: number;
  #lastPingAt: number;
  #pings = 0;
  #timer: Timer;

  constructor({ id, ws, peer, clock, logger, handlers, report }: ControlConnectionOptions) {
    this.id = id;
    this.peer = peer;
    this.#ws = ws;
    this.#clock = clock;
    this.#logger = logger;
    this.#handlers = handlers;
    this.#report = report;
    this.#lastHeardAt = clock.monotonic();
    this.#lastPingAt = this.#lastHeardAt;
    this.#timer = this.#after(WIRE_LIMITS.CONTROL_AUTH_TIMEOUT_MS, () => this.#authTimedOut());
    guard.listen(ws, 'message', this, SCOPE, (data: RawData, isBinary: boolean) => this.#hear(data, isBinary));
    guard.listen(ws, 'ping', this, SCOPE, () => this.#heard());
    guard.listen(ws, 'pong', this, SCOPE, () => this.#heard());
    // ws closes by itself after an error: a frame over the limit (1009), bytes that are no frame (1002).
    guard.listen(ws, 'error', this, SCOPE, (error: Error) =>
      this.#logger.debug({ client: peer.clientAddr, reason: error.message }, 'control socket error'),
    );
    // Apart from what follows: the end of the edge waits for it.
    this.whenGone = new Promise((resolve) => ws.on('close', () => resolve()));
    guard.listen(ws, 'close', this, SCOPE, () => this.#closed());
  }

  /** The client is told, and comes back: its tunnels are held for it. */
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

  send(message: ControlMessageInput): void {
    if (this.#phase === 'closed') return;
    this.#ws.send(encodeControl(message));
    if (this.#ws.bufferedAmount > WIRE_LIMITS.CONTROL_SEND_QUEUE_MAX_BYTES)
      this.close(CLOSE_CODES.slow, 'CONTROL_SLOW');
  }

  sendFault(fault: Fault): void {
    this.send({ type: 'Error', code: fault.code, message: fault.message, retryable: fault.retryable, fatal: false });
  }

  /** The session ends with this: the client does not come back by itself unless the fault is retryable. */
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
    // A reader that is held up would not see the answer to the close frame.
    this.#ws.resume();
    this.#ws.close(code, reason);
    const timer = this.#clock.setTimeout(() => this.#ws.terminate(), EDGE_LIMITS.CONTROL_CLOSE_TIMEOUT_MS);
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
    this.#waiting.length = 0;
    this.#handlers.onLost(this);
  }

  #heard(): void {
    this.#lastHeardAt = this.#clock.monotonic();
  }

  #hear(data: RawData, isBinary: boolean): void {
    if (this.#phase === 'closed') return;
    this.#heard();
    // Handlers run in the order of their frames; a frame that takes time holds up the socket, not memory.
    this.#waiting.push(() => this.#receive(isBinary ? null : textOf(data)));
    if (!this.#isBusy) this.#work();
  }

  #work(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const pending = next();
      if (pending === undefined) continue;
      this.#isBusy = true;
      // Not after a close: its answer has to be read.
      if (this.isOpen) this.#ws.pause();
      void pending
        .catch((error: unknown) => this.#fail(error))
        .then(() => {
          this.#isBusy = false;
          if (this.#phase === 'closed') return;
          this.#ws.resume();
          this.#work();
        })
        .catch((error: unknown) => this.abandon(error, 'control.frame'));
      return;
    }
  }

  #fail(error: unknown): void {
    if (error instanceof Fault) this.fail(error);
    else this.abandon(error, 'control.frame');
  }

  #receive(text: string | null): Promise<void> | void {
    const decoded = text === null ? refusedBinary() : decodeControl(text);
    if (!decoded.ok) return this.#refuseFrame(decoded.fault);
    const { message } = decoded;
    if (message.type === 'Ping') return this.send({ type: 'Pong', id: message.id });
    if (this.#phase === 'open') return this.#handlers.onMessage(this, message);
    if (message.type === 'Auth') return this.#authenticate(message);
    this.refuseAuth(new Fault('CONTROL_NOT_AUTHENTICATED'));
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

  /** One timer, set for the next thing that can fall due: a dead link is noticed at the moment, not at the next tick. */
  #watch(): void {
    const now = this.#clock.monotonic();
    const facts = { lastHeardAt: this.#lastHeardAt, lastPingAt: this.#lastPingAt };
    const verdict = judgeLiveness(facts, now, LIVENESS);
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
    const dueAt = Math.min(this.#lastPingAt + LIVENESS.pingEveryMs, this.#lastHeardAt + LIVENESS.deadAfterMs);
    this.#timer = this.#after(dueAt - now, () => this.#watch());
  }
}

const refusedBinary = () => ({ ok: false, fault: new Fault('CONTROL_BAD_FRAME', { reason: 'binary frame' }) }) as const;

/** ws hands over a Buffer unless told otherwise. */
const textOf = (data: RawData): string => (data as Buffer).toString('utf8');
