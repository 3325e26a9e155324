// Queue for the registrations of a control connection. Registrations run in order, limited by their rate, while other frames of the
// connection are handled. A connection with a full queue is not read until half of the queue is done.

import type { MessageOf } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import type { ControlRateLimiter } from './control-rate-limiter.rules.ts';
import { registrationWeight } from './frame-weights.ts';

/**
 * Maximum of queued registrations per connection. At this number, reading pauses until half of them are done. Clients keep at most half of
 * this number in flight.
 */
export const CONTROL_REGISTRATIONS_WAITING = 512;
/** Maximum of queued characters. A registration with a policy can have 64 Ki. */
const CONTROL_REGISTRATIONS_WAITING_CHARS = 256 * 1024;

/** Messages handled in order. An unregistration waits for earlier registrations, because one of them may be for the same tunnel. */
export type TurnMessage = MessageOf<'RegisterTunnel'> | MessageOf<'UnregisterTunnel'>;

export interface RegistrationTurnsOptions {
  readonly clock: Clock;
  readonly pace: ControlRateLimiter;
  readonly handle: (message: TurnMessage) => Promise<void> | void;
  /** Called when a full queue of registrations is half empty again. */
  readonly onRoom: () => void;
  /** Called after an error in a registration that no caller would catch. */
  readonly onError: (error: unknown) => void;
}

interface Waiting {
  readonly message: TurnMessage;
  readonly characters: number;
}

export class RegistrationTurns {
  readonly #options: RegistrationTurnsOptions;
  readonly #queue: Waiting[] = [];
  #characters = 0;
  #isFull = false;
  /** True while a tunnel's registration is running. */
  #isBusy = false;
  /** Timer of the rate limit for registrations, or null. */
  #pause: Timer | null = null;
  #turn: NodeJS.Immediate | null = null;
  #isStopped = false;

  constructor(options: RegistrationTurnsOptions) {
    this.#options = options;
  }

  /** True if no registration is queued or running. */
  get isIdle(): boolean {
    return !this.#isBusy && this.#queue.length === 0;
  }

  /** True if too many registrations are queued, so that reading should pause. Frames already read (at most 64 KiB) are still queued. */
  get isFull(): boolean {
    return this.#isFull;
  }

  add(message: TurnMessage, characters: number): void {
    this.#queue.push({ message, characters });
    this.#characters += characters;
    this.#isFull ||=
      this.#queue.length >= CONTROL_REGISTRATIONS_WAITING || this.#characters >= CONTROL_REGISTRATIONS_WAITING_CHARS;
    this.#work();
  }

  /** Drops the queued registrations after the connection has closed. */
  stop(): void {
    this.#isStopped = true;
    this.#queue.length = 0;
    this.#characters = 0;
    this.#pause?.cancel();
    if (this.#turn !== null) clearImmediate(this.#turn);
  }

  #work(): void {
    const { clock, pace } = this.#options;
    while (!this.#isStopped && !this.#isBusy && this.#pause === null && this.#queue.length > 0) {
      const verdict = pace.next(clock.monotonic());
      if (verdict.kind === 'wait') return this.#wait(verdict.ms);
      this.#turn ??= setImmediate(() => this.#turnOver());
      if (verdict.kind === 'next-turn') return;
      this.#take(this.#queue.shift() as Waiting);
    }
  }

  #wait(ms: number): void {
    this.#pause = this.#options.clock.setTimeout(() => {
      this.#pause = null;
      this.#guarded(() => this.#work());
    }, ms);
  }

  #turnOver(): void {
    this.#turn = null;
    this.#options.pace.turnOver();
    this.#guarded(() => this.#work());
  }

  #take({ message, characters }: Waiting): void {
    const { clock, pace, handle, onError } = this.#options;
    this.#characters -= characters;
    pace.charge(registrationWeight(message, characters), clock.monotonic());
    const pending = handle(message);
    // Set before onRoom is called, because the callback can queue another registration.
    this.#isBusy = pending !== undefined;
    this.#tellRoom();
    if (pending === undefined) return;
    void pending.catch(onError).then(() => {
      this.#isBusy = false;
      this.#guarded(() => this.#work());
    });
  }

  #tellRoom(): void {
    const count = CONTROL_REGISTRATIONS_WAITING;
    const characters = CONTROL_REGISTRATIONS_WAITING_CHARS;
    if (!this.#isFull || this.#queue.length > count / 2 || this.#characters > characters / 2) return;
    this.#isFull = false;
    this.#options.onRoom();
  }

  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
