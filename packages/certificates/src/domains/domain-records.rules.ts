// DNS records that a domain's owner must set, as shown to the owner, with the result of the last check; and the part of a check that is
// stored for this.
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

/** Maximum stored values per DNS record type. An edge has few addresses. */
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
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  /** IP addresses of the edge, as its domain resolves. Empty if unknown. */
  readonly edgeAddresses: readonly string[];
  /** True if a zone begins at the name, where no CNAME can exist. Null before the first check. */
  readonly isApex: boolean | null;
  /** True if a wildcard certificate is wanted and the built-in responder can answer its challenge. */
  readonly wantsChallenge: boolean;
}

/** Returns the DNS records that a domain's owner must set. `answers` is null before the first check. */
export const recordsOf = (
  domain: DomainName,
  facts: RecordFacts,
  answers: ProofAnswers | null,
): readonly ShownRecord[] => {
  const ways = hasTextWay(domain, facts, answers) ? textWay(domain, facts, answers) : cnameWay(domain, facts, answers);
  return domain.wildcard && facts.wantsChallenge ? [...ways, challengeRecord(domain, facts, answers)] : ways;
};

/** Returns true for the variant with two records: at a zone apex, or if the owner has begun with it. */
const hasTextWay = (domain: DomainName, facts: RecordFacts, answers: ProofAnswers | null): boolean => {
  if (has(answers?.chain, cnameTarget(facts.token, facts.domain))) return false;
  if (has(answers?.texts, proofText(facts.token))) return true;
  // No zone begins below `*`. Before the first check, a name with two labels is most likely a registered domain.
  return !domain.wildcard && (facts.isApex ?? domain.host.split('.').length === 2);
};

/** Variant of the DNS setup with a single CNAME record for proof and route. */
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

/** The stored part of a check for an account. Other DNS content may have any size and is dropped. */
export interface StoredCheck {
  readonly answers: ProofAnswers;
  readonly isApex: boolean | null;
}

/** Lookups without an answer keep their result from `before`, which is null for the first check. */
export const checkToStore = (
  look: StoredCheck,
  { token, domain }: Pick<RecordFacts, 'token' | 'domain'>,
  before: StoredCheck | null,
): StoredCheck => {
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
