// Solver for dns-01: the built-in responder or the operator's program sets the record, and the authority is notified once it is visible.

import { Fault } from '@tunnel/errors';
import { isOfDomain } from '@tunnel/rules/names';
import type { Clock } from '@tunnel/runtime';
import { type DnsChallenges, SEEN_WITHIN_MS, untilSeen } from '../../dns/dns-challenges.ts';
import { challengeName, challengeTarget } from '../../domains/domain-proof.rules.ts';
import { type ChallengeAnswer, challengeRecord } from '../client/challenge-answers.ts';
import type { ChallengeSolver } from './challenge-solver.ts';

export interface DnsSolverOptions {
  readonly challenges: DnsChallenges;
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  /** `zone`: records are set in the edge's zone, and other names point to it. `anywhere`: records are set at the queried name. */
  readonly sets: 'zone' | 'anywhere';
  /** Target in the edge's zone for a custom domain's record. Null if the domain has no owner. */
  readonly challengeTargetOf: (name: string) => Promise<string | null>;
  readonly isOpen: () => boolean;
  readonly clock: Clock;
}

export const createDnsSolver = (options: DnsSolverOptions): ChallengeSolver => {
  const { challenges, domain, sets, challengeTargetOf, isOpen, clock } = options;
  /** Target of every response, because the owner of a domain can change before the response is cleared. */
  const targets = new Map<string, string>();

  const targetOf = async (name: string): Promise<string> => {
    if (sets === 'anywhere' || name === domain) return challengeName(name);
    if (isOfDomain(name, domain)) return challengeTarget(name.slice(0, -domain.length - 1), domain);
    const target = await challengeTargetOf(name);
    if (target === null)
      throw new Fault('DNS_OUTSIDE_ZONE', { name: challengeName(name), zone: challengeName(domain) });
    return target;
  };

  /** The missing record in zone file syntax. The NS record of the edge's zone comes first, because the others depend on it. */
  const missingRecord = async (at: string, target: string, value: string): Promise<string> => {
    if (sets === 'anywhere') return `${at} TXT ${value}`;
    const leads = at !== target && (await challenges.isSeen(target, value));
    return leads ? `${at} CNAME ${target}` : `${challengeName(domain)} NS ${domain}`;
  };

  return {
    type: 'dns-01',
    // A single name of a custom domain is validated by http-01 or tls-alpn-01, so dns-01 is only for wildcards and the operator's domain.
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
