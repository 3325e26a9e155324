// An open control connection: typed messages in both directions, pings, and a single end event.

import { Fault } from '@tunnel/errors';
import {
  CLOSE_CODES,
  type ControlMessage,
  type ControlMessageInput,
  decodeControl,
  encodeControl,
  WIRE_LIMITS,
} from '@tunnel/protocol';
import { judgeLiveness } from '@tunnel/rules/rate';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { RawData, WebSocket } from 'ws';
import { CLIENT_LIMITS } from '../limits.ts';

/** Maximum wait for the edge to confirm the close when the client ends. */
const CLIENT_CLOSE_TIMEOUT_MS = 2000;

/** The reason for the end of a control connection. */
export interface LinkEnd {
  /** The WebSocket close code, or 1006 if the peer sent no close frame. */
  readonly closeCode: number;
  readonly fault: Fault;
}

export interface LinkHandlers {
  onMessage(message: ControlMessage): void;
  onEnd(end: LinkEnd): void;
}

export interface LinkPace {
  readonly pingEveryMs: number;
  readonly deadAfterMs: number;
}

const DEFAULT_PACE: LinkPace = {
  pingEveryMs: WIRE_LIMITS.CONTROL_PING_INTERVAL_MS,
  deadAfterMs: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS,
};

export class ControlLink {
  /** IP address of the edge, as dialed. */
  readonly remoteAddress: string;
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #handlers: LinkHandlers | null = null;
  /** Messages received while no handlers are set: none before Auth, and few until the session takes over. */
  #inbox: ControlMessage[] = [];
  #end: LinkEnd | null = null;
  #closing: Timer | null = null;
  #pace = DEFAULT_PACE;
  #lastHeardAt: number;
  #lastPingAt: number;
  #pingId = 0;
  #roundTripMs: number | null = null;
  /** Called with the round trip time of the latest ping on the control connection. */
  #onRoundTrip: (ms: number) => void = () => {};

  constructor(socket: WebSocket, options: { clock: Clock; logger: Logger; remoteAddress?: string }) {
    this.remoteAddress = (options.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
    this.#socket = socket;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#lastHeardAt = this.#lastPingAt = options.clock.monotonic();
    socket.on('message', (data, isBinary) => this.#onFrame(data, isBinary));
    socket.on('error', (error) => this.#logger.debug({ error: error.message }, 'control connection failed'));
    socket.on('close', (code) => this.#finish({ closeCode: code, fault: faultOfClose(code) }));
  }

  get isOpen(): boolean {
    return this.#end === null;
  }

  /** Round trip time of the last answered ping. Null until a ping was answered. */
  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  /** Replaces the handlers of the control connection. Every message is delivered to exactly one listener. */
  listen(handlers: LinkHandlers): void {
    this.#handlers = handlers;
    const waiting = this.#inbox;
    this.#inbox = [];
    for (const message of waiting) handlers.onMessage(message);
    if (this.#end !== null) handlers.onEnd(this.#end);
  }

  /** Removes the handlers of the control connection. Messages are queued for the next listener. */
  unlisten(): void {
    this.#handlers = null;
  }

  /** Sets the control connection's ping interval and timeout as requested by the edge. */
  setPace(pace: LinkPace): void {
    this.#pace = pace;
  }

  send(message: ControlMessageInput): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.send(encodeControl(message));
    if (this.#socket.bufferedAmount > WIRE_LIMITS.CONTROL_SEND_QUEUE_MAX_BYTES) this.drop(new Fault('CONTROL_SLOW'));
  }

  /**
   * Sends a ping and resolves with the round trip time in milliseconds. Never settles if the ping is not answered. Only one call at a time.
   */
  roundTrip(): Promise<number> {
    return new Promise((resolve) => {
      this.#onRoundTrip = resolve;
      this.#ping(this.#clock.monotonic());
    });
  }

  /** Checks whether the control connection needs a ping or is dead. Called every CLIENT_TICK_MS by the owner of the timer. */
  tick(now: number): void {
    if (this.#end !== null) return;
    const facts = { lastHeardAt: this.#lastHeardAt, lastPingAt: this.#lastPingAt };
    // Judges liveness as of the end of the tick interval, because the next check comes only then.
    const verdict = judgeLiveness(facts, now + CLIENT_LIMITS.CLIENT_TICK_MS - 1, this.#pace);
    if (verdict === 'dead') {
      this.drop(new Fault('CONTROL_DEAD', { seconds: Math.round(this.#pace.deadAfterMs / 1000) }));
    } else if (verdict === 'ping-due') this.#ping(now);
  }

  /** Closes the connection after pending messages were sent. Terminates if the peer does not answer in time. */
  close(code: number, reason: string): void {
    if (this.#end !== null || this.#closing !== null) return;
    this.#closing = this.#clock.setTimeout(() => this.#socket.terminate(), CLIENT_CLOSE_TIMEOUT_MS);
    this.#socket.close(code, reason);
  }

  /** Ends the connection immediately and reports the fault to the listener. No close frame is sent, because the peer is assumed dead. */
  drop(fault: Fault): void {
    this.#socket.terminate();
    this.#finish({ closeCode: 1006, fault });
  }

  #onFrame(data: RawData, isBinary: boolean): void {
    this.#lastHeardAt = this.#clock.monotonic();
    const decoded = isBinary
      ? ({ ok: false, fault: new Fault('CONTROL_BAD_FRAME', { reason: 'not a text frame' }) } as const)
      : decodeControl(textOf(data));
    if (!decoded.ok) {
      this.#logger.debug({ code: decoded.fault.code, reason: decoded.fault.message }, 'unknown control frame');
      this.send({ type: 'Error', code: decoded.fault.code, message: decoded.fault.message.slice(0, 1000) });
      return;
    }
    this.#onMessage(decoded.message);
  }

  #onMessage(message: ControlMessage): void {
    if (message.type === 'Ping') this.send({ type: 'Pong', id: message.id });
    else if (message.type === 'Pong') this.#onPong(message.id);
    else if (this.#handlers === null) this.#inbox.push(message);
    else this.#handlers.onMessage(message);
  }

  #ping(now: number): void {
    this.#lastPingAt = now;
    this.#pingId += 1;
    this.send({ type: 'Ping', id: this.#pingId });
  }

  #onPong(id: number): void {
    // A late pong for an earlier ping on the control connection cannot measure the current ping.
    if (id !== this.#pingId) return;
    this.#roundTripMs = this.#clock.monotonic() - this.#lastPingAt;
    this.#onRoundTrip(this.#roundTripMs);
  }

  #finish(end: LinkEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#closing?.cancel();
    this.#handlers?.onEnd(end);
  }
}

const textOf = (data: RawData): string =>
  Array.isArray(data) ? Buffer.concat(data).toString('utf8') : Buffer.from(data as Buffer).toString('utf8');

/** Maps the control connection's close codes of docs/protocol.md to faults. */
const faultOfClose = (code: number): Fault => {
  if (code === 1000 || code === 1001) return new Fault('EDGE_SHUTTING_DOWN');
  if (code === CLOSE_CODES.authRefused) return new Fault('AUTH_TOKEN_INVALID');
  if (code === CLOSE_CODES.dead)
    return new Fault('CONTROL_DEAD', { seconds: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS / 1000 });
  if (code === CLOSE_CODES.replaced) return new Fault('CONTROL_REPLACED');
  if (code === CLOSE_CODES.slow) return new Fault('CONTROL_SLOW');
  return new Fault('CARRIER_LOST');
};

/**
 * Waits until the edge has seen the intentional end, at most CLIENT_CLOSE_TIMEOUT_MS. Otherwise the edge would hold the client's ports and
 * names.
 */
export const awaitClose = async (link: ControlLink, clock: Clock): Promise<void> => {
  if (!link.isOpen) return;
  await new Promise<void>((resolve) => {
    const timer = clock.setTimeout(resolve, CLIENT_CLOSE_TIMEOUT_MS);
    const onEnd = (): void => {
      timer.cancel();
      resolve();
    };
    link.listen({ onMessage: () => {}, onEnd });
  });
  link.drop(new Fault('CLIENT_CLOSED'));
};
