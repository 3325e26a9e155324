// Finds the response to a certificate authority's challenge by asking the platform, at a limited rate and with a cache. Strangers can
// trigger lookups. The limits ensure that strangers cause only a few requests per second and bounded memory use, and cannot keep an
// authority from getting the response for a name with an order in progress.
import type { ChallengeAnswer } from '@tunnel/certificates/acme';
import type { ChallengeQuestion } from '@tunnel/contract';
import { SlidingWindow } from '@tunnel/rules/rate';
import { Cache, type Clock, type Timer } from '@tunnel/runtime';
import type { PlatformLink } from '../platform-link.ts';
import type { AskedChallenge } from './edge-certificates.ts';

/** Maximum lookups per second for names without an order in progress. Above the limit, the challenge is treated as unknown. */
export const CHALLENGE_LOOKUPS_PER_SECOND = 5;
/**
 * Maximum lookups per second for names with an order in progress, which are counted separately. Only a few orders are in progress at the
 * same time.
 */
const CHALLENGE_ORDER_QUESTIONS_PER_SECOND = 20;
/** Minimum time between two lookups for a name with an order in progress. Visitors in between wait for the second response. */
export const CHALLENGE_ORDER_PAUSE_MS = 500;
/** Time for which a response is cached. A certificate authority validates from several networks. */
const CHALLENGE_ANSWER_KEPT_MS = 60_000;
/** Time until a name without a challenge is looked up again, because a challenge may have been created since. */
const CHALLENGE_NONE_KEPT_MS = 1000;
/** Maximum cached responses to challenge lookups. The oldest response is evicted first. */
const CHALLENGE_ANSWERS_MAX = 1000;

export interface ChallengeLookupOptions {
  readonly clock: Clock;
  readonly link: Pick<PlatformLink, 'challenge'>;
}

interface Kept {
  readonly answer: ChallengeAnswer | null;
}

/** Lookup for a name in progress, including the pause after the lookup. */
interface Turn {
  /**
   * Requests that arrived after the lookup was sent. An empty result may be outdated for these requests, so they wait for the next
   * lookup.
   */
  next: ((answer: Promise<ChallengeAnswer | null>) => void)[];
  pause: Timer | null;
}

type Answered = Promise<ChallengeAnswer | null>;

export class ChallengeLookup {
  readonly #options: ChallengeLookupOptions;
  readonly #kept: Cache<string, Kept>;
  readonly #asked = new Map<string, Answered>();
  /** Lookups by name, for names with an order in progress. */
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

  /** Finds the response to a challenge. `isOnOrder`: a certificate for the name is being ordered. Never rejects. */
  async find(key: AskedChallenge, isOnOrder: boolean): Answered {
    if (isOnOrder && 'tlsName' in key) return this.#ofOrder(key.tlsName, () => true);
    // A different token can belong to an ACME client behind the tunnel, or to another name with a redirect to this host.
    const answer =
      isOnOrder && 'host' in key ? await this.#ofOrder(key.host, ({ token }) => token === key.token) : null;
    return answer ?? this.#ofAny(key);
  }

  /** Removes names from the cache, because a new order can have other challenges. */
  forget(names: readonly string[]): void {
    for (const name of names) for (const id of [tlsIdOf(name), nameIdOf(name)]) this.#kept.delete(id);
  }

  /** Stops all lookups: waiting requests get null, and pauses are canceled. */
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
    // A token belongs to a single order, so an unknown token stays unknown. A name can get a challenge at any time.
    const noneMs = isToken ? CHALLENGE_ANSWER_KEPT_MS : CHALLENGE_NONE_KEPT_MS;
    const answered = this.#answerOf(question, id, noneMs).finally(() => this.#asked.delete(id));
    this.#asked.set(id, answered);
    return answered;
  }

  /** Returns the cached response. Null is a cached empty result; undefined means not cached. */
  #keptOf(id: string): ChallengeAnswer | null | undefined {
    return this.#kept.get(id)?.answer;
  }

  /**
   * Looks up a challenge at the platform. Never rejects: a failure or timeout gives null and is not cached. `noneMs` is the time for
   * which an empty result is cached.
   */
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
