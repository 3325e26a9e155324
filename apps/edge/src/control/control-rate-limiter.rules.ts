// Rate limiter for the frames of a control connection: a token bucket per connection, a bucket shared by all connections of the account,
// and a maximum of frames per event-loop turn. A connection without tokens is not read for a while, so only the sender is delayed.

import { TokenBucket, TokenBuckets, type TokenRate } from '@tunnel/rules/rate';

export interface ControlRateLimits {
  readonly connection: TokenRate;
  /** Rate of control messages shared by all connections of an account. */
  readonly account: TokenRate;
  /**
   * Frames after which a connection waits for the next event-loop turn, whether they came in one turn or many: a connection with a few
   * frames per turn then needs no callback at the end of each. A long frame counts several times.
   */
  readonly perTurn: number;
  /** Shortest pause, so that thousands of paused connections do not cause a flood of timers. */
  readonly pauseMinMs: number;
}

export type FrameVerdict =
  | { readonly kind: 'take' }
  | { readonly kind: 'next-turn' }
  | { readonly kind: 'wait'; readonly ms: number };

const TAKE: FrameVerdict = { kind: 'take' };
const NEXT_TURN: FrameVerdict = { kind: 'next-turn' };

const ACCOUNTS_MAX = 20_000;

/** Creates the buckets of accounts. Buckets outlive connections; otherwise each new connection would start with a full burst. */
export const accountBucketsOf = ({ account }: ControlRateLimits): TokenBuckets =>
  new TokenBuckets({ ...account, keys: ACCOUNTS_MAX });

export class ControlRateLimiter {
  readonly #rules: ControlRateLimits;
  readonly #accounts: TokenBuckets;
  readonly #own: TokenBucket;
  #account: string | null = null;
  #inTurn = 0;

  constructor(rules: ControlRateLimits, accounts: TokenBuckets) {
    this.#rules = rules;
    this.#accounts = accounts;
    this.#own = new TokenBucket(rules.connection);
  }

  /**
   * Sets the shared bucket charged for this connection's frames: the network's bucket before authentication, the account's bucket
   * afterwards, or null for none.
   */
  chargeTo(account: string | null): void {
    this.#account = account;
  }

  /** Decides whether the control connection's next frame may be read now. */
  next(now: number): FrameVerdict {
    const shared = this.#account === null ? 0 : this.#accounts.waitMs(this.#account, now);
    const ms = Math.max(this.#own.waitMs(now), shared);
    if (ms > 0) return { kind: 'wait', ms: Math.max(ms, this.#rules.pauseMinMs) };
    return this.#inTurn < this.#rules.perTurn ? TAKE : NEXT_TURN;
  }

  /** Charges a frame. `inTurn` is its weight in the limit per event-loop turn. */
  charge(weight: number, now: number, inTurn = 1): void {
    this.#inTurn += inTurn;
    this.#own.charge(weight, now);
    if (this.#account !== null) this.#accounts.charge(this.#account, weight, now);
  }

  turnOver(): void {
    this.#inTurn = 0;
  }
}
