// dns-01: the record is set by the built-in responder or by the operator's program, and the authority hears of it once it is seen.

import { Fault } from '@tunnel/errors';
import { isOfDomain } from '@tunnel/rules/names';
import type { Clock } from '@tunnel/runtime';
import { type DnsChallenges, SEEN_WITHIN_MS, untilSeen } from '../../dns/dns-challenges.ts';
import { challengeName, challengeTarget } from '../../domains/domain-proof.rules.ts';
import { type ChallengeAnswer, challengeRecord } from '../client/challenge-answers.ts';
import type { ChallengeSolver } from './challenge-solver.ts';

export interface DnsSolverOptions {
  readonly challenges: DnsChallenges;
  /** `[server] domain`. */
  readonly domain: string;
  /** `zone`: values stand in our own zone, and other names lead there. `anywhere`: they stand where they are looked for. */
  readonly sets: 'zone' | 'anywhere';
  /** Of an own domain: where in our zone its record leads; null: it is nobody's. */
  readonly challengeTargetOf: (name: string) => Promise<string | null>;
  readonly isOpen: () => boolean;
  readonly clock: Clock;
}

export const createDnsSolver = (options: DnsSolverOptions): ChallengeSolver => {
  const { challenges, domain, sets, challengeTargetOf, isOpen, clock } = options;
  /** Where each answer was set: whose a domain is may change before it is cleared. */
  const targets = new Map<string, string>();

  const targetOf = async (name: string): Promise<string> => {
    if (sets === 'anywhere' || name === domain) return challengeName(name);
    if (isOfDomain(name, domain)) return challengeTarget(name.slice(0, -domain.length - 1), domain);
    const target = await challengeTargetOf(name);
    if (target === null)
      throw new Fault('DNS_OUTSIDE_ZONE', { name: challengeName(name), zone: challengeName(domain) });
    return target;
  };

  /** What to set, as it is written in a zone. The one that leads to our own zone first: without it no other is seen. */
  const missingRecord = async (at: string, target: string, value: string): Promise<string> => {
    if (sets === 'anywhere') return `${at} TXT ${value}`;
    const leads = at !== target && (await challenges.isSeen(target, value));
    return leads ? `${at} CNAME ${target}` : `${challengeName(domain)} NS ${domain}`;
  };

  return {
    type: 'dns-01',
    // Of other names than the operator's own a single one is validated where it leads to.
    canAnswer: (name, isWildcard) => isOpen() && (isWildcard || isOfDomain(name, domain)),
    set: async (answer, signal) => {
      const { name: at, value } = challengeRecord(answer);
      const target = await targetOf(answer.name);
      targets.set(keyOf(answer), target);
      await challenges.set(target, value);
      if (await untilSeen(challenges, { name: at, value }, { clock, signal })) return;
      const record = await missingRecord(at, target, value);
      throw new Fault('DNS_RECORD_UNSEEN', { record, seconds: SEEN_WITHIN_MS / 1000 });
    },
    clear: async (answer) => {
      const target = targets.get(keyOf(answer));
      targets.delete(keyOf(answer));
      if (target !== undefined) await challenges.clear(target, challengeRecord(answer).value);
    },
  };
};

const keyOf = ({ name, token }: ChallengeAnswer): string => `${name} ${token}`;
