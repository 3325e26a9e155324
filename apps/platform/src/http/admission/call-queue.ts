// Calls that run when it is their turn. The rule of the turns is in call-turns.rules; here are the clock, and the callers who hang up while they wait.
import type { ServerResponse } from 'node:http';
import { Fault } from '@tunnel/errors';
import type { Clock, Timer } from '@tunnel/runtime';
import { type CallerKind, type CallTurn, CallTurns, type CallTurnsOptions } from './call-turns.rules.ts';

/** How often calls that wait are looked at. */
export const API_CALLS_LOOK_MS = 10;

/** Whose turn a call takes. */
export interface ApiCaller {
  readonly kind: CallerKind;
  readonly id: string;
}

/** The answer of a request, which closes when its caller hangs up. Absent: a call within the process. */
export type Outgoing = Pick<ServerResponse, 'once' | 'off' | 'destroyed'>;

export interface CallQueueOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout'>;
  /** What a call is told whose turn did not come in time. */
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

  /** Rejects with the refusal, or API_CALLER_GONE, where `work` never began. */
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

  /** While calls wait, time passes for them. */
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

/** What a call is told, maybe before anybody waits to hear it. */
class Outcome {
  /** null: it was not refused. */
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
