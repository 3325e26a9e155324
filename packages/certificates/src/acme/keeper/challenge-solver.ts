// Who answers challenges of one type: set makes the answer visible to the authority, clear takes it back.
import type { Clock } from '@tunnel/runtime';
import type { ChallengeAnswer, ChallengeType } from '../client/challenge-answers.ts';
import type { CertificateStore } from './certificate-store.ts';

/** Lifetime of an answer to a challenge. */
const CHALLENGE_LIFE_MS = 10 * 60_000;

export interface ChallengeSolver {
  readonly type: ChallengeType;
  /** Whether the name's answer would be seen; its own host, without a wildcard's `*.`. */
  canAnswer(name: string, isWildcard: boolean): boolean | Promise<boolean>;
  /** Settles when the authority may look; rejects with what a person can do something about, and no validation is spent. */
  set(answer: ChallengeAnswer, signal: AbortSignal): Promise<void>;
  clear(answer: ChallengeAnswer): Promise<void>;
}

/** http-01 and tls-alpn-01: the answer lies in the store, where whoever is asked by the authority finds it. */
export const createStoredSolver = (
  type: 'http-01' | 'tls-alpn-01',
  { store, clock }: { readonly store: CertificateStore; readonly clock: Clock },
  canAnswer: (name: string) => boolean | Promise<boolean> = () => true,
): ChallengeSolver => ({
  type,
  canAnswer,
  set: (answer) => store.setChallenge(answer, clock.now() + CHALLENGE_LIFE_MS),
  clear: (answer) => store.clearChallenge(answer),
});
