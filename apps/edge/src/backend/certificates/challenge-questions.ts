// Whether a challenge of a certificate authority is ours: the platform is asked, no more often than it likes, and its answers are used again.
// Strangers can cause questions; what they cannot cause is more than a few a second, or memory without a bound.
import type { ChallengeAnswer, ChallengeKey } from '@tunnel/acme';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import type { PlatformLink } from '../platform-link.ts';

export interface ChallengeQuestionsOptions {
  readonly clock: Clock;
  readonly link: Pick<PlatformLink, 'challenge'>;
}

interface Kept {
  readonly answer: ChallengeAnswer | null;
  readonly untilMs: number;
}

const SECOND_MS = 1000;

export class ChallengeQuestions {
  readonly #options: ChallengeQuestionsOptions;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  readonly #asked = new Map<string, Promise<ChallengeAnswer | null>>();
  /** When questions of the last second were asked. */
  #askedMs: number[] = [];

  constructor(options: ChallengeQuestionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** `isLikely`: a certificate of that name is on order. Never rejects. */
  find(key: ChallengeKey, isLikely: boolean): Promise<ChallengeAnswer | null> {
    const id = 'token' in key ? `token ${key.token}` : tlsIdOf(key.tlsName);
    const kept = this.#kept.get(id);
    if (kept !== undefined && this.#options.clock.monotonic() < kept.untilMs) return Promise.resolve(kept.answer);
    const asked = this.#asked.get(id) ?? this.#ask(id, key, isLikely);
    return asked ?? NONE;
  }

  /** Another order for these may be under way: its answers are others. */
  forget(names: readonly string[]): void {
    for (const name of names) this.#kept.delete(tlsIdOf(name));
  }

  #ask(id: string, key: ChallengeKey, isLikely: boolean): Promise<ChallengeAnswer | null> | null {
    if (!this.#hasRoom(isLikely)) return null;
    const asked = this.#answerOf(key)
      .then((answer) => {
        this.#keep(id, key, answer);
        return answer;
      })
      // Away, or too late.
      .catch(() => null)
      .finally(() => this.#asked.delete(id));
    this.#asked.set(id, asked);
    return asked;
  }

  #hasRoom(isLikely: boolean): boolean {
    const nowMs = this.#options.clock.monotonic();
    this.#askedMs = this.#askedMs.filter((askedMs) => nowMs - askedMs < SECOND_MS);
    const { CHALLENGE_QUESTIONS_PER_SECOND: most, CHALLENGE_QUESTIONS_KEPT: forLikely } = EDGE_LIMITS;
    if (this.#askedMs.length >= (isLikely ? most : most - forLikely)) return false;
    this.#askedMs.push(nowMs);
    return true;
  }

  async #answerOf(key: ChallengeKey): Promise<ChallengeAnswer | null> {
    const question = 'token' in key ? { token: key.token } : { tls_name: key.tlsName };
    const { challenge } = await this.#options.link.challenge(question);
    if (challenge === null) return null;
    const { type, name, token, key_authorization: keyAuthorization } = challenge;
    return { type, name, token, keyAuthorization };
  }

  /** A token is of one order, so that it never becomes ours later; a name gets its challenge when it is ordered. */
  #keep(id: string, key: ChallengeKey, answer: ChallengeAnswer | null): void {
    const isNoneYet = answer === null && !('token' in key);
    const keptMs = isNoneYet ? EDGE_LIMITS.CHALLENGE_NONE_KEPT_MS : EDGE_LIMITS.CHALLENGE_ANSWER_KEPT_MS;
    this.#kept.delete(id);
    this.#kept.set(id, { answer, untilMs: this.#options.clock.monotonic() + keptMs });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= EDGE_LIMITS.CHALLENGE_ANSWERS_MAX) return;
      this.#kept.delete(oldest);
    }
  }
}

const NONE = Promise.resolve(null);

const tlsIdOf = (name: string): string => `tls ${name}`;
