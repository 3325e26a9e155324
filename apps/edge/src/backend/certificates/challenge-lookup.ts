// Whether a challenge of a certificate authority is ours: the platform is asked, no more often than it likes, and its answers are used again.
// Strangers can cause questions; what they cannot cause is more than a few a second, memory without a bound, or that one who validates a name
// which is on order goes without its answer.
import type { ChallengeAnswer } from '@tunnel/certificates/acme';
import type { ChallengeQuestion } from '@tunnel/contract';
import { SlidingWindow } from '@tunnel/rules/rate';
import { Cache, type Clock, type Timer } from '@tunnel/runtime';
import type { PlatformLink } from '../platform-link.ts';
import type { AskedChallenge } from './edge-certificates.ts';

/** questions about challenges that the platform is asked in a second, of names with no order under way; over that none is ours */
export const CHALLENGE_LOOKUPS_PER_SECOND = 5;
/** the same of names on order, which those of all others do not use up: a few orders are under way at once */
const CHALLENGE_ORDER_QUESTIONS_PER_SECOND = 20;
/** Minimum time between two questions about one name that is being ordered. Visitors in between wait for the second answer. */
export const CHALLENGE_ORDER_PAUSE_MS = 500;
/** how long an answer is used again: an authority looks from several networks */
const CHALLENGE_ANSWER_KEPT_MS = 60_000;
/** Time until a name without a challenge is asked for again, because it may have one by then. */
const CHALLENGE_NONE_KEPT_MS = 1000;
/** answers that are kept; the oldest is forgotten */
const CHALLENGE_ANSWERS_MAX = 1000;

export interface ChallengeLookupOptions {
  readonly clock: Clock;
  readonly link: Pick<PlatformLink, 'challenge'>;
}

interface Kept {
  readonly answer: ChallengeAnswer | null;
}

/** From a question about a name to the end of the pause after it. */
interface Turn {
  /** Of those who came after it was put: "none" was true before they came. */
  next: ((answer: Promise<ChallengeAnswer | null>) => void)[];
  pause: Timer | null;
}

type Answered = Promise<ChallengeAnswer | null>;

export class ChallengeLookup {
  readonly #options: ChallengeLookupOptions;
  readonly #kept: Cache<string, Kept>;
  readonly #asked = new Map<string, Answered>();
  /** By name on order. */
  readonly #turns = new Map<string, Turn>();
  readonly #ofOthers = questionsASecond(CHALLENGE_LOOKUPS_PER_SECOND);
  readonly #ofOrders = questionsASecond(CHALLENGE_ORDER_QUESTIONS_PER_SECOND);

  constructor(options: ChallengeLookupOptions) {
    this.#options = options;
    this.#kept = new Cache({ max: CHALLENGE_ANSWERS_MAX, clock: options.clock });
  }

  get size(): number {
    return this.#kept.size;
  }

  /** `isOnOrder`: a certificate for that name is. Never rejects. */
  async find(key: AskedChallenge, isOnOrder: boolean): Answered {
    if (isOnOrder && 'tlsName' in key) return this.#ofOrder(key.tlsName, () => true);
    // Of an own client behind the tunnel, or of a name that was sent here by another.
    const answer =
      isOnOrder && 'host' in key ? await this.#ofOrder(key.host, ({ token }) => token === key.token) : null;
    return answer ?? this.#ofAny(key);
  }

  /** Another order for these may be under way: its answers are others. */
  forget(names: readonly string[]): void {
    for (const name of names) for (const id of [tlsIdOf(name), nameIdOf(name)]) this.#kept.delete(id);
  }

  /** Nobody waits any more. */
  stop(): void {
    for (const { pause, next } of this.#turns.values()) {
      pause?.cancel();
      for (const give of next) give(NONE);
    }
    this.#turns.clear();
  }

  // ---- names on order: one question after the other, so that whoever floods one costs no more than one that comes alone ----

  async #ofOrder(name: string, isMeant: (answer: ChallengeAnswer) => boolean): Answered {
    const kept = this.#keptOf(nameIdOf(name));
    if (kept != null && isMeant(kept)) return kept;
    const answer = await this.#inTurn(name);
    return answer !== null && isMeant(answer) ? answer : null;
  }

  #inTurn(name: string): Answered {
    const turn = this.#turns.get(name);
    if (turn === undefined) return this.#askOf(name);
    return new Promise((give) => void turn.next.push(give));
  }

  #askOf(name: string): Answered {
    if (this.#ofOrders.take(this.#options.clock.monotonic()) > 0) return NONE;
    const turn: Turn = { next: [], pause: null };
    this.#turns.set(name, turn);
    const answered = this.#answerOf({ name }, nameIdOf(name), 0);
    turn.pause = this.#options.clock.setTimeout(() => {
      this.#turns.delete(name);
      if (turn.next.length === 0) return;
      const next = this.#askOf(name);
      for (const give of turn.next) give(next);
    }, CHALLENGE_ORDER_PAUSE_MS);
    return answered;
  }

  // ---- all others ----

  #ofAny(key: AskedChallenge): Answered {
    const isToken = 'token' in key;
    const id = isToken ? `token ${key.token}` : tlsIdOf(key.tlsName);
    const kept = this.#keptOf(id);
    if (kept !== undefined) return Promise.resolve(kept);
    const asked = this.#asked.get(id);
    if (asked !== undefined) return asked;
    if (this.#ofOthers.take(this.#options.clock.monotonic()) > 0) return NONE;
    const question = isToken ? { token: key.token } : { tls_name: key.tlsName };
    // A token is of one order, so that it never becomes ours later; a name gets its challenge when it is ordered.
    const noneMs = isToken ? CHALLENGE_ANSWER_KEPT_MS : CHALLENGE_NONE_KEPT_MS;
    const answered = this.#answerOf(question, id, noneMs).finally(() => this.#asked.delete(id));
    this.#asked.set(id, answered);
    return answered;
  }

  /** undefined: nothing is known. */
  #keptOf(id: string): ChallengeAnswer | null | undefined {
    return this.#kept.get(id)?.answer;
  }

  /** Never rejects: away, or too late, is none that is not kept. `noneMs`: how long it is believed that there is none. */
  async #answerOf(question: ChallengeQuestion, id: string, noneMs: number): Answered {
    try {
      const { challenge } = await this.#options.link.challenge(question);
      if (challenge === null) {
        this.#kept.set(id, { answer: null }, noneMs);
        return null;
      }
      const { type, name, token, key_authorization: keyAuthorization } = challenge;
      const answer = { type, name, token, keyAuthorization };
      this.#kept.set(id, { answer }, CHALLENGE_ANSWER_KEPT_MS);
      return answer;
    } catch {
      return null;
    }
  }
}

const questionsASecond = (perWindow: number): SlidingWindow => new SlidingWindow({ perWindow, windowMs: 1000 });

const NONE: Answered = Promise.resolve(null);

const tlsIdOf = (name: string): string => `tls ${name}`;
const nameIdOf = (name: string): string => `name ${name}`;
