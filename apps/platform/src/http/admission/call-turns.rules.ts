// When calls of an API begin: fairly between accounts, and between networks for callers without an account. A single caller may use every place. While
// others want places as well, each has its share at once and its rate, so that a flood waits for itself and delays no other caller.

import { LinkedSet, type ListNode } from '@tunnel/rules/collections';
import { FairTurns, type Standing, TokenBuckets, type Turn } from '@tunnel/rules/rate';

export const TIMES = {
  /**
   * A call of the API that has not begun after so long is refused with 429.
   * @limit api: Queued call, waiting time | 429 `API_ACCOUNT_LIMIT` or `API_NETWORK_LIMIT` with Retry-After
   */
  waitMs: 2000,
  /** Rates count once calls have been waiting for so long without a break: before that, no caller is short of anything. */
  queueStandsMs: 100,
  /** A call that takes longer gives back its place: it waits for an edge or a provider, and must not keep others waiting. */
  slowMs: 1000,
  /** The burst of account_calls_per_second and network_calls_per_second, in seconds of them. */
  burstSecs: 4,
  /** The longest time that a refused caller is told to wait. */
  retryAfterMaxMs: 60_000,
};

/**
 * The event loop is later than this, so that calls that run do not get the time they need: while others call, an account or network then runs so many at
 * once. A burst of cheap calls must not make every step of theirs wait.
 */
export const LATE = { fromMs: 20, atOnce: 4 };

/** `unbounded` has turns like everybody, but neither share nor rate: a trusted proxy stands for many networks. */
export type CallerKind = 'account' | 'network' | 'unbounded';

export interface CallBounds {
  readonly atOnce: number;
  /** null: no rate. */
  readonly perSecond: number | null;
}

export interface CallTurnsOptions {
  /** Places in total. */
  readonly atOnce: number;
  /** Places that a single caller may use while nobody else wants any; absent: all of them. Fewer leave something that is slow to come back, such as database connections, for whoever comes next. */
  readonly aloneAtOnce?: number;
  readonly waitingMax: number;
  /** How long a call waits for its turn; absent: as long as calls of the API do. */
  readonly waitMs?: number;
  /** Accounts, and networks, whose rates are known; for one more the oldest is forgotten. */
  readonly callersMax: number;
  readonly account: CallBounds;
  readonly network: CallBounds;
}

/** What becomes of a call. Exactly one of the two is called, unless the call ends first. */
export interface CallOutcome {
  begin(): void;
  refuse(retryAfterMs: number): void;
}

/** The rules of all callers of a kind. */
interface KindRules {
  readonly share: number;
  /** null: no rate. */
  readonly rates: TokenBuckets | null;
  /** By which callers are told when to come again. */
  readonly perSecond: number;
}

/** The calls of an account or network that run. */
class Caller {
  readonly rules: KindRules;
  running = 0;
  /** Of these, calls that have given back their place because they take long. */
  slow = 0;

  constructor(rules: KindRules) {
    this.rules = rules;
  }

  get slots(): number {
    return this.running - this.slow;
  }
}

/** One call, from its arrival to its end. */
export class CallTurn implements Turn {
  readonly owner: string;
  readonly kind: CallerKind;
  readonly enteredMs: number;
  readonly #turns: Pick<CallTurns, 'began' | 'refused'>;
  readonly outcome: CallOutcome;
  beganMs = 0;
  state: 'waiting' | 'running' | 'slow' | 'over' = 'waiting';
  /** Among all that wait, or among all that hold a place. */
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
  /** Callers with a call that runs. */
  readonly #callers = new Map<string, Caller>();
  /** Oldest first. */
  readonly #waiting = new LinkedSet<CallTurn>();
  /** Calls that hold a place, oldest first. */
  readonly #placed = new LinkedSet<CallTurn>();
  /** Places held by callers within their shares. */
  #within = 0;
  #nowMs = 0;
  /** When `advance` was last called. */
  #advancedMs = 0;
  /** Since when calls have been waiting without a break; null: none waits. */
  #queueSinceMs: number | null = null;
  /** The process does not keep up: every step of a call waits behind the steps of all others. */
  #isLate = false;
  /** The caller that came last, and the last one before it that is another. */
  #last: Seen = NEVER;
  #lastOther: Seen = NEVER;

  constructor({ atOnce, aloneAtOnce, waitingMax, waitMs, callersMax, account, network }: CallTurnsOptions) {
    // A share above the number of places would never be reached.
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

  /** Callers that something is remembered of, besides rates. */
  get callers(): number {
    return this.#callers.size;
  }

  /** A call has arrived. Its outcome may be told before this returns. Whoever enters owes one `end`. */
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

  /** The call is answered, was refused, or its caller has left. Again: nothing. */
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
   * Time has passed: calls that have waited too long are refused, and others may begin. To be called often while calls wait. `lateMs`: how late the event
   * loop is.
   */
  advance(nowMs: number, lateMs = 0): void {
    this.#isLate = lateMs > LATE.fromMs;
    const passedMs = nowMs - this.#advancedMs;
    this.#nowMs = nowMs;
    this.#advancedMs = nowMs;
    // At this pace all that wait now have left when the last of them has waited for its time.
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

  /** Of a turn of this. */
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
    // A caller that has used up its rate while nobody else wanted a place owes nothing for it.
    if (rules.rates?.waitMs(turn.owner, this.#nowMs) === 0) rules.rates.charge(turn.owner, 1, this.#nowMs);
    turn.outcome.begin();
  }

  /** Of a turn of this. */
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
   * More calls of the caller wait than its rate lets begin in time. Some of them are refused before that, a few at a time: thousands that came together
   * would otherwise be refused together, and would come again together.
   */
  #isHopeless({ owner, kind }: CallTurn): boolean {
    const { rates, perSecond } = this.#rules[kind];
    if (rates === null || this.#turns.waitingOf(owner) <= (perSecond * this.#waitMs) / 1000) return false;
    return this.#doRatesCount(owner);
  }

  /**
   * A caller within its share begins unless callers within theirs hold all places: places that others hold beyond their shares do not count against
   * it. So a flood of calls that take long keeps nobody waiting, and at most twice the places are taken.
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

  /** Once calls have waited for some time, and only while another caller wants places as well. */
  #doRatesCount(owner: string): boolean {
    if (this.#queueSinceMs === null || this.#nowMs - this.#queueSinceMs < TIMES.queueStandsMs) return false;
    return this.#doOthersCall(owner);
  }

  #doOthersCall(owner: string): boolean {
    const { atMs } = this.#last.owner === owner ? this.#lastOther : this.#last;
    return this.#nowMs - atMs <= this.#waitMs;
  }

  /** A call that takes long mostly waits for an edge or a provider. From now on it counts for its caller, and not for the others. */
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
    // Callers come and go for ever.
    if (caller.running === 0) this.#callers.delete(turn.owner);
  }
}
