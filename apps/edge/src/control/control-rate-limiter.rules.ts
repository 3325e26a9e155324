// How fast the frames of one control connection are taken up: tokens of its own, tokens that the connections of its account share, and so
// many frames a turn. Who has used them up is not read for a while; what it costs, it costs the sender.

import { TokenBucket, TokenBuckets, type TokenRate } from '@tunnel/rules/rate';

export interface ControlRateLimits {
  readonly connection: TokenRate;
  /** Of all connections of an account together. */
  readonly account: TokenRate;
  /** Frames of one connection in one turn of the event loop; a long one counts for several. */
  readonly perTurn: number;
  /** The shortest pause: a thousand connections that wait must not become a flood of timers. */
  readonly pauseMinMs: number;
}

export type FrameVerdict =
  | { readonly kind: 'take' }
  | { readonly kind: 'next-turn' }
  | { readonly kind: 'wait'; readonly ms: number };

const TAKE: FrameVerdict = { kind: 'take' };
const NEXT_TURN: FrameVerdict = { kind: 'next-turn' };

const ACCOUNTS_MAX = 20_000;

/** The buckets of accounts. They outlive connections, or each new connection would bring a new burst along. */
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

  /** The shared bucket that frames of this connection are charged to as well: of the network before authentication, of the account after it. null for none. */
  chargeTo(account: string | null): void {
    this.#account = account;
  }

  /** Whether the next frame may be read. */
  next(now: number): FrameVerdict {
    const shared = this.#account === null ? 0 : this.#accounts.waitMs(this.#account, now);
    const ms = Math.max(this.#own.waitMs(now), shared);
    if (ms > 0) return { kind: 'wait', ms: Math.max(ms, this.#rules.pauseMinMs) };
    return this.#inTurn < this.#rules.perTurn ? TAKE : NEXT_TURN;
  }

  /** `inTurn`: for how many frames of a turn it counts. */
  charge(weight: number, now: number, inTurn = 1): void {
    this.#inTurn += inTurn;
    this.#own.charge(weight, now);
    if (this.#account !== null) this.#accounts.charge(this.#account, weight, now);
  }

  turnOver(): void {
    this.#inTurn = 0;
  }
}
