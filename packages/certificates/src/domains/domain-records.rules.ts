// The records that the owner of a domain has to set, as they are shown: what, where, why, and whether they were found at the last look; and what
// is kept of a look for that.
import type { DomainName } from './domain-names.rules.ts';
import {
  challengeName,
  challengeTarget,
  cnameTarget,
  type DnsAnswer,
  foldText,
  type ProofAnswers,
  proofText,
  proofTextName,
  valuesOf,
} from './domain-proof.rules.ts';

/** values of one kind of record that are kept of a look: an edge has a few addresses */
const DOMAIN_KEPT_VALUES_MAX = 16;

export type RecordPurpose = 'route' | 'proof' | 'challenge';

export interface ShownRecord {
  readonly type: 'CNAME' | 'A' | 'AAAA' | 'TXT';
  readonly name: string;
  readonly value: string;
  readonly purpose: RecordPurpose;
  readonly found: boolean;
}

export interface RecordFacts {
  readonly token: string;
  /** `[server] domain`. */
  readonly domain: string;
  /** Of the edge, as the domain's own name resolves; empty: not known. */
  readonly edgeAddresses: readonly string[];
  /** A zone begins at the name, so that no CNAME can stand there. null: nobody has looked yet. */
  readonly isApex: boolean | null;
  /** A wildcard's certificate is wanted, and the built-in responder can answer for it. */
  readonly wantsChallenge: boolean;
}

/** `answers` null: nobody has looked yet. */
export const recordsOf = (
  domain: DomainName,
  facts: RecordFacts,
  answers: ProofAnswers | null,
): readonly ShownRecord[] => {
  const ways = hasTextWay(domain, facts, answers) ? textWay(domain, facts, answers) : cnameWay(domain, facts, answers);
  return domain.wildcard && facts.wantsChallenge ? [...ways, challengeRecord(domain, facts, answers)] : ways;
};

/** Two records instead of one: where no CNAME can stand, or where the owner has begun so. */
const hasTextWay = (domain: DomainName, facts: RecordFacts, answers: ProofAnswers | null): boolean => {
  if (has(answers?.chain, cnameTarget(facts.token, facts.domain))) return false;
  if (has(answers?.texts, proofText(facts.token))) return true;
  // Below a wildcard's `*` no zone begins. Before the first look two labels are most likely a domain that was registered so.
  return !domain.wildcard && (facts.isApex ?? domain.host.split('.').length === 2);
};

/** One record, proof and route. */
const cnameWay = (
  { name }: DomainName,
  { token, domain }: RecordFacts,
  answers: ProofAnswers | null,
): ShownRecord[] => {
  const value = cnameTarget(token, domain);
  return [{ type: 'CNAME', name, value, purpose: 'proof', found: has(answers?.chain, value) }];
};

const textWay = (domain: DomainName, facts: RecordFacts, answers: ProofAnswers | null): ShownRecord[] => {
  const value = proofText(facts.token);
  const routes = facts.edgeAddresses.map((address): ShownRecord => {
    const type = address.includes(':') ? 'AAAA' : 'A';
    return { type, name: domain.name, value: address, purpose: 'route', found: has(answers?.addresses, address) };
  });
  const found = has(answers?.texts, value);
  return [...routes, { type: 'TXT', name: proofTextName(domain.host), value, purpose: 'proof', found }];
};

const challengeRecord = (
  { host }: DomainName,
  { token, domain }: RecordFacts,
  answers: ProofAnswers | null,
): ShownRecord => {
  const value = challengeTarget(token, domain);
  const found = has(answers?.challenge, value);
  return { type: 'CNAME', name: challengeName(host), value, purpose: 'challenge', found };
};

/** What is kept of a look for one account: whatever else stands in DNS may be of any number and size. */
export interface KeptLook {
  readonly answers: ProofAnswers;
  readonly isApex: boolean | null;
}

/** What had no answer is as it was `before`; null: nobody has looked before. */
export const keptLook = (
  look: KeptLook,
  { token, domain }: Pick<RecordFacts, 'token' | 'domain'>,
  before: KeptLook | null,
): KeptLook => {
  const kept = (key: keyof ProofAnswers, isWanted: (value: string) => boolean): DnsAnswer => {
    const answer = look.answers[key];
    if (answer.kind === 'no-answer') return before?.answers[key] ?? { kind: 'absent' };
    const values = valuesOf(answer).filter(isWanted).slice(0, DOMAIN_KEPT_VALUES_MAX);
    return values.length === 0 ? { kind: 'absent' } : { kind: 'found', values };
  };
  const equals = (wanted: string) => (value: string) => foldText(value) === wanted;
  return {
    answers: {
      chain: kept('chain', equals(cnameTarget(token, domain))),
      texts: kept('texts', equals(proofText(token))),
      addresses: kept('addresses', () => true),
      challenge: kept('challenge', equals(challengeTarget(token, domain))),
    },
    isApex: look.isApex ?? before?.isApex ?? null,
  };
};

const has = (answer: DnsAnswer | undefined, value: string): boolean =>
  answer !== undefined && valuesOf(answer).some((one) => foldText(one) === value);
