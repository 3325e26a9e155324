// Queue of calls that run when their turn comes. call-turns.rules.ts decides the order; the queue adds the clock, and handles callers
// that disconnect while waiting.
import type { ServerResponse } from 'node:http';
import { Fault } from '@tunnel/errors';
import type { Clock, Timer } from '@tunnel/runtime';
import { type CallerKind, type CallTurn, CallTurns, type CallTurnsOptions } from './call-turns.rules.ts';

/** Interval for checking whether waiting calls can begin or have waited too long. */
export const API_CALLS_LOOK_MS = 10;

/** The account or network that a call counts for. */
export interface ApiCaller {
  readonly kind: CallerKind;
  readonly id: string;
}

/** The response of a request, which closes when the caller disconnects. Absent for a call within the process. */
export type Outgoing = Pick<ServerResponse, 'once' | 'off' | 'destroyed'>;

export interface CallQueueOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout'>;
  /** Builds the fault for a call not started in time. */
  readonly refusal: (caller: ApiCaller, seconds: number) => Fault;
}

export class CallQueue {
  readonly #options: CallQueueOptions;
  readonly #turns: CallTurns;
  #timer: Timer | null = null;

  constructor(deps: CallQueueOptions, options: CallTurnsOptions) {
    this.#options = deps;
    this.#turns = new CallTurns(options);
  }

  get running(): number {
    return this.#turns.running;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  /**
   * Runs the work when the caller's turn comes. Rejects without starting the work if the call is refused, or with API_CALLER_GONE if the
   * caller disconnects.
   */
  async inTurn<T>(outgoing: Outgoing | undefined, caller: ApiCaller, work: () => Promise<T>): Promise<T> {
    const waited = this.#turnOf(outgoing, caller);
    const turn = waited instanceof Promise ? await waited : waited;
    try {
      return await work();
    } finally {
      this.#turns.end(turn, this.#options.clock.monotonic());
    }
  }

  #turnOf(outgoing: Outgoing | undefined, caller: ApiCaller): CallTurn | Promise<CallTurn> {
    const { clock } = this.#options;
    const outcome = new Outcome();
    const turn = this.#turns.enter(caller.kind, caller.id, clock.monotonic(), outcome);
    if (turn.state === 'running') return turn;
    if (outcome.retryAfterMs !== null) throw this.#refusal(caller, outcome.retryAfterMs);
    this.#lookSoon();
    return new Promise((resolve, reject) => {
      const onGone = (): void => {
        this.#turns.end(turn, clock.monotonic());
        reject(new Fault('API_CALLER_GONE'));
      };
      outcome.onTold = () => {
        outgoing?.off('close', onGone);
        if (outcome.retryAfterMs === null) resolve(turn);
        else reject(this.#refusal(caller, outcome.retryAfterMs));
      };
      if (outgoing?.destroyed === true) onGone();
      else outgoing?.once('close', onGone);
    });
  }

  #refusal(caller: ApiCaller, retryAfterMs: number): Fault {
    return this.#options.refusal(caller, Math.max(1, Math.ceil(retryAfterMs / 1000)));
  }

  /** Schedules the next check while calls are waiting, because waiting calls expire with time. */
  #lookSoon(): void {
    if (this.#timer !== null || this.#turns.waiting === 0) return;
    const { clock } = this.#options;
    const dueMs = clock.monotonic() + API_CALLS_LOOK_MS;
    this.#timer = clock.setTimeout(() => {
      const now = clock.monotonic();
      this.#timer = null;
      this.#turns.advance(now, now - dueMs);
      this.#lookSoon();
    }, API_CALLS_LOOK_MS);
  }
}

/** Outcome of a call's wait. May be decided before the caller has started to wait. */
class Outcome {
  /** Retry time of a refused call. Null if the call was not refused. */
  retryAfterMs: number | null = null;
  onTold: (() => void) | null = null;

  begin(): void {
    this.onTold?.();
  }

  refuse(retryAfterMs: number): void {
    this.retryAfterMs = retryAfterMs;
    this.onTold?.();
  }
}
