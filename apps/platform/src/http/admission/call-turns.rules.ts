// Rules for the start of API calls, fair between accounts, and between networks for callers without an account. A single caller can use
// every place. While other callers want places, a caller is limited to its share of places and to its rate, so that a flood waits for
// itself and delays no other caller.

import { LinkedSet, type ListNode } from '@tunnel/rules/collections';
import { FairTurns, type Standing, TokenBuckets, type Turn } from '@tunnel/rules/rate';

export const TIMES = {
  /**
   * Maximum wait of an API call for its turn. Afterwards the call is refused with 429.
   * @limit api: Queued call, waiting time | 429 `API_ACCOUNT_LIMIT` or `API_NETWORK_LIMIT` with Retry-After
   */
  waitMs: 2000,
  /** Time for which calls must have been waiting without a break before rates apply. Before, no caller is short of places. */
  queueStandsMs: 100,
  /**
   * Running time after which a call gives its place back. A slow call waits for an edge or a provider, and must not keep other calls
   * waiting.
   */
  slowMs: 1000,
  /** Burst of account_calls_per_second and network_calls_per_second, as a number of seconds at the full rate. */
  burstSecs: 4,
  /** Longest retry time sent to a refused caller. */
  retryAfterMaxMs: 60_000,
};

/**
 * Limit for an overloaded process. If the event loop is later than `fromMs`, running calls do not get enough time, and an account or
 * network can run only `atOnce` calls while other callers make calls. A burst of cheap calls must not delay every step of another
 * caller's calls.
 */
export const LATE = { fromMs: 20, atOnce: 4 };

/**
 * Kinds of callers. An `unbounded` caller takes turns like other callers, but has neither a share nor a rate: a trusted proxy stands for
 * many networks.
 */
export type CallerKind = 'account' | 'network' | 'unbounded';

export interface CallBounds {
  readonly atOnce: number;
  /** Calls per second while places are scarce. Null means no rate. */
  readonly perSecond: number | null;
}

export interface CallTurnsOptions {
  /** Number of places, which is the number of calls that can run at the same time. */
  readonly atOnce: number;
  /**
   * Places that a single caller can use while no other caller wants a place. Default: every place. A lower number keeps resources that
   * are released slowly, such as database connections, free for the next caller.
   */
  readonly aloneAtOnce?: number;
  readonly waitingMax: number;
  /** Maximum wait of a call for its turn. Default: the limit of API calls. */
  readonly waitMs?: number;
  /** Maximum number of accounts, and of networks, with a stored rate. Beyond the limit, the oldest entry is evicted. */
  readonly callersMax: number;
  readonly account: CallBounds;
  readonly network: CallBounds;
}

/** Receives the decision about a call. Exactly one of the methods is called, unless the call ends first. */
export interface CallOutcome {
  begin(): void;
  refuse(retryAfterMs: number): void;
}

/** Share and rate of every caller of a kind (accounts, networks or unbounded callers). */
interface KindRules {
  readonly share: number;
  /** Rates of the callers. Null if the kind has no rate. */
  readonly rates: TokenBuckets | null;
  /** Calls per second, for computing the retry time of refused callers. */
  readonly perSecond: number;
}

/** Counts of the running calls of an account or network. */
class Caller {
  readonly rules: KindRules;
  running = 0;
  /** Number of running calls that have given their place back because they are slow. */
  slow = 0;

  constructor(rules: KindRules) {
    this.rules = rules;
  }

  get slots(): number {
    return this.running - this.slow;
  }
}

/** An API call, from arrival to end. */
export class CallTurn implements Turn {
  readonly owner: string;
  readonly kind: CallerKind;
  readonly enteredMs: number;
  readonly #turns: Pick<CallTurns, 'began' | 'refused'>;
  readonly outcome: CallOutcome;
  beganMs = 0;
  state: 'waiting' | 'running' | 'slow' | 'over' = 'waiting';
  /** Entry in the list of waiting calls, or in the list of calls with a place. */
  node: ListNode<CallTurn> | null = null;

  constructor(about: { owner: string; kind: CallerKind; nowMs: number; outcome: CallOutcome }, turns: CallTurns) {
    this.owner = about.owner;
    this.kind = about.kind;
    this.enteredMs = about.nowMs;
    this.outcome = about.outcome;
    this.#turns = turns;
  }

  begin(): void {
    this.#turns.began(this);
  }

  giveWay(): void {
    this.#turns.refused(this);
  }
}

interface Seen {
  readonly owner: string;
  readonly atMs: number;
}

const NEVER: Seen = { owner: '', atMs: Number.NEGATIVE_INFINITY };

export class CallTurns {
  readonly #atOnce: number;
  readonly #aloneAtOnce: number;
  readonly #waitMs: number;
  readonly #rules: Readonly<Record<CallerKind, KindRules>>;
  readonly #turns: FairTurns;
  /** Callers with a running call, by kind and id. */
  readonly #callers = new Map<string, Caller>();
  /** Calls waiting for their turn, oldest first. */
  readonly #waiting = new LinkedSet<CallTurn>();
  /** Running calls with a place (slow calls have given their place back), oldest first. */
  readonly #placed = new LinkedSet<CallTurn>();
  /** Number of places held by callers within their shares. */
  #within = 0;
  #nowMs = 0;
  /** Time of the last call of `advance`. */
  #advancedMs = 0;
  /** Time since which calls have been waiting without a break. Null if no call is waiting. */
  #queueSinceMs: number | null = null;
  /** True if the process is overloaded: every step of a call waits behind the steps of all other calls. */
  #isLate = false;
  /** Last caller, and the last caller before it with a different owner. */
  #last: Seen = NEVER;
  #lastOther: Seen = NEVER;

  constructor({ atOnce, aloneAtOnce, waitingMax, waitMs, callersMax, account, network }: CallTurnsOptions) {
    // At least as many places as the largest share, because a larger share could never be used.
    this.#atOnce = Math.max(atOnce, account.atOnce, network.atOnce);
    this.#aloneAtOnce = aloneAtOnce ?? this.#atOnce;
    this.#waitMs = waitMs ?? TIMES.waitMs;
    const rulesOf = ({ atOnce: share, perSecond }: CallBounds): KindRules => {
      if (perSecond === null) return { share, perSecond: share, rates: null };
      const burst = perSecond * TIMES.burstSecs;
      return { share, perSecond, rates: new TokenBuckets({ perSecond, burst, keys: callersMax }) };
    };
    this.#rules = {
      account: rulesOf(account),
      network: rulesOf(network),
      unbounded: { share: this.#atOnce, perSecond: this.#atOnce, rates: null },
    };
    this.#turns = new FairTurns({ waitingMax, standing: (owner) => this.#standing(owner) });
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get running(): number {
    return this.#turns.running;
  }

  /** Number of callers with stored state, apart from rates. */
  get callers(): number {
    return this.#callers.size;
  }

  /** Adds a call that has arrived. The outcome may be decided before the method returns. Every `enter` must be followed by one `end`. */
  enter(kind: CallerKind, id: string, nowMs: number, outcome: CallOutcome): CallTurn {
    this.#nowMs = nowMs;
    const owner = `${kind} ${id}`;
    const turn = new CallTurn({ owner, kind, nowMs, outcome }, this);
    if (this.#last.owner !== owner) this.#lastOther = this.#last;
    this.#last = { owner, atMs: nowMs };
    if (!this.#turns.enter(turn)) this.refused(turn);
    else if (turn.state === 'waiting') {
      turn.node = this.#waiting.add(turn);
      this.#queueSinceMs ??= nowMs;
    }
    return turn;
  }

  /** Removes a call that was answered or refused, or was left by its caller. A repeated call of the method does nothing. */
  end(turn: CallTurn, nowMs: number): void {
    this.#nowMs = nowMs;
    const { state } = turn;
    if (state === 'over') return;
    if (state === 'waiting') {
      this.#turns.leave(turn);
      this.#leaveQueue(turn);
      return;
    }
    this.#giveBack(turn);
    turn.state = 'over';
    this.#turns.done();
  }

  /**
   * Updates the time: refuses calls that have waited too long, and begins other calls. Must be called often while calls wait. `lateMs` is
   * the delay of the event loop.
   */
  advance(nowMs: number, lateMs = 0): void {
    this.#isLate = lateMs > LATE.fromMs;
    const passedMs = nowMs - this.#advancedMs;
    this.#nowMs = nowMs;
    this.#advancedMs = nowMs;
    // Number of hopeless calls to refuse early. At this pace, the current queue is empty when its newest call reaches the maximum wait.
    const leftMs = (this.#waiting.last?.enteredMs ?? nowMs) + this.#waitMs - nowMs;
    let early = leftMs <= 0 ? 0 : Math.ceil((this.#waiting.size * Math.min(passedMs, leftMs)) / leftMs);
    for (let turn = this.#waiting.first; turn !== null; turn = this.#waiting.first) {
      if (nowMs - turn.enteredMs < this.#waitMs && (early <= 0 || !this.#isHopeless(turn))) break;
      early -= 1;
      this.#turns.leave(turn);
      this.refused(turn);
    }
    for (let turn = this.#placed.first; turn !== null; turn = this.#placed.first) {
      if (nowMs - turn.beganMs < TIMES.slowMs) break;
      this.#becomeSlow(turn);
    }
    this.#turns.beginNext();
  }

  /** Records that a call begins. Only called by a CallTurn. */
  began(turn: CallTurn): void {
    this.#leaveQueue(turn);
    turn.state = 'running';
    turn.beganMs = this.#nowMs;
    turn.node = this.#placed.add(turn);
    const rules = this.#rules[turn.kind];
    let caller = this.#callers.get(turn.owner);
    if (caller === undefined) {
      caller = new Caller(rules);
      this.#callers.set(turn.owner, caller);
    }
    if (caller.slots < rules.share) this.#within += 1;
    caller.running += 1;
    // The rate is charged only while the caller has tokens left. Calls beyond the rate, started while no other caller wanted a place,
    // leave no debt.
    if (rules.rates?.waitMs(turn.owner, this.#nowMs) === 0) rules.rates.charge(turn.owner, 1, this.#nowMs);
    turn.outcome.begin();
  }

  /** Refuses a call. Only called by a CallTurn, or for a call without a place in the queue. */
  refused(turn: CallTurn): void {
    this.#leaveQueue(turn);
    const { perSecond } = this.#rules[turn.kind];
    const backlogMs = ((this.#turns.waitingOf(turn.owner) + 1) * 1000) / perSecond;
    turn.outcome.refuse(Math.min(backlogMs, TIMES.retryAfterMaxMs));
  }

  #leaveQueue(turn: CallTurn): void {
    turn.state = 'over';
    this.#waiting.delete(turn.node);
    if (this.#waiting.size > 0) return;
    this.#queueSinceMs = null;
    this.#isLate = false;
  }

  /**
   * Returns true if the caller has more waiting calls than its rate can begin in time. Such calls are refused early, a few at a time.
   * Otherwise thousands of calls that arrived together would be refused together and return together.
   */
  #isHopeless({ owner, kind }: CallTurn): boolean {
    const { rates, perSecond } = this.#rules[kind];
    if (rates === null || this.#turns.waitingOf(owner) <= (perSecond * this.#waitMs) / 1000) return false;
    return this.#doRatesCount(owner);
  }

  /**
   * Decides whether a caller can begin a call. A caller within its share begins unless callers within their shares hold all places.
   * Places that other callers hold beyond their shares do not count, so a flood of slow calls delays no other caller, and at most twice
   * the number of places is taken.
   */
  #standing(owner: string): Standing {
    const caller = this.#callers.get(owner);
    const { share, rates } = caller?.rules ?? this.#rulesOf(owner);
    if (rates !== null && this.#doRatesCount(owner) && rates.waitMs(owner, this.#nowMs) > 0) return 'wait';
    if (this.#isLate && (caller?.slots ?? 0) >= LATE.atOnce && this.#doOthersCall(owner)) return 'wait';
    if ((caller?.running ?? 0) < share) return this.#within < this.#atOnce ? 'begin' : 'wait';
    return this.#placed.size + (caller?.slow ?? 0) < this.#aloneAtOnce ? 'spare' : 'wait';
  }

  #rulesOf(owner: string): KindRules {
    return this.#rules[owner.slice(0, owner.indexOf(' ')) as CallerKind];
  }

  /** Returns true if rates apply: calls have been waiting for some time, and another caller also wants places. */
  #doRatesCount(owner: string): boolean {
    if (this.#queueSinceMs === null || this.#nowMs - this.#queueSinceMs < TIMES.queueStandsMs) return false;
    return this.#doOthersCall(owner);
  }

  #doOthersCall(owner: string): boolean {
    const { atMs } = this.#last.owner === owner ? this.#lastOther : this.#last;
    return this.#nowMs - atMs <= this.#waitMs;
  }

  /**
   * Takes the place away from a slow call, which usually waits for an edge or a provider. From now on the call counts for its caller, but
   * not against other callers.
   */
  #becomeSlow(turn: CallTurn): void {
    const caller = this.#callers.get(turn.owner);
    this.#placed.delete(turn.node);
    turn.state = 'slow';
    if (caller === undefined) return;
    caller.slow += 1;
    if (caller.slots < caller.rules.share) this.#within -= 1;
  }

  #giveBack(turn: CallTurn): void {
    const caller = this.#callers.get(turn.owner);
    if (caller === undefined) return;
    caller.running -= 1;
    if (turn.state === 'slow') caller.slow -= 1;
    else {
      this.#placed.delete(turn.node);
      if (caller.slots < caller.rules.share) this.#within -= 1;
    }
    // Unused callers are deleted, because new callers keep arriving.
    if (caller.running === 0) this.#callers.delete(turn.owner);
  }
}
