// A solver for challenges of a type: `set` publishes the response, `clear` removes it.
import type { Clock } from '@tunnel/runtime';
import type { ChallengeAnswer, ChallengeType } from '../client/challenge-answers.ts';
import type { CertificateStore } from './certificate-store.ts';

/** Time for which the response to an ACME challenge is kept. */
const CHALLENGE_LIFE_MS = 10 * 60_000;

export interface ChallengeSolver {
  readonly type: ChallengeType;
  /** Returns whether the authority could see the response. `name` is the host without `*.`. */
  canAnswer(name: string, isWildcard: boolean): boolean | Promise<boolean>;
  /** Resolves when the authority can validate. Rejects with an error that a person can fix, before a validation attempt is used. */
  set(answer: ChallengeAnswer, signal: AbortSignal): Promise<void>;
  clear(answer: ChallengeAnswer): Promise<void>;
}

/** Solver for http-01 and tls-alpn-01: stores the response, where the edge that the authority contacts finds it. */
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
