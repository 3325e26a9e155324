// Registrations of one control connection that wait for their turn: one after the other, as fast as their own pace allows, while all other frames
// of the connection are handled. The queue is bounded: a connection whose queue is full is not read until half of it is done.

import type { MessageOf } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import type { ControlRateLimiter } from './control-rate-limiter.rules.ts';
import { registrationWeight } from './frame-weights.ts';

/** registrations of one connection that wait; with so many it is not read until half of them are done. A client has no more than half of that under way */
export const CONTROL_REGISTRATIONS_WAITING = 512;
/** the same by their characters, which one registration with a policy can have 64 Ki of */
const CONTROL_REGISTRATIONS_WAITING_CHARS = 256 * 1024;

/** An unregistration stays behind the registrations before it: one of them may be of the same tunnel. */
export type TurnMessage = MessageOf<'RegisterTunnel'> | MessageOf<'UnregisterTunnel'>;

export interface RegistrationTurnsOptions {
  readonly clock: Clock;
  readonly pace: ControlRateLimiter;
  readonly handle: (message: TurnMessage) => Promise<void> | void;
  /** The queue was full, and is half empty. */
  readonly onRoom: () => void;
  /** Something failed where no caller would catch it. */
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
  /** A registration is under way. */
  #isBusy = false;
  /** The pace allows no more until then. */
  #pause: Timer | null = null;
  #turn: NodeJS.Immediate | null = null;
  #isStopped = false;

  constructor(options: RegistrationTurnsOptions) {
    this.#options = options;
  }

  /** No registration waits or is under way. */
  get isIdle(): boolean {
    return !this.#isBusy && this.#queue.length === 0;
  }

  /** Nothing more is to be read; what was read already still finds room, which is 64 KiB of frames at most. */
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

  /** The connection is gone: nothing that waits is answered. */
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
    // Before anybody hears of room: with the news a further one may come.
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
