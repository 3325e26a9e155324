// DNS check of a custom domain: performs all lookups needed to judge the verification and the displayed records.

import type { DnsLookups } from '@tunnel/certificates/dns';
import {
  type DnsAnswer,
  type DomainName,
  extractTokens,
  isOwnTarget,
  type ProofAnswers,
  type ProofFindings,
  proofQuestions,
} from '@tunnel/certificates/domains';

export interface DomainCheck {
  readonly answers: ProofAnswers;
  readonly findings: ProofFindings;
  /** True if a DNS zone begins at the name; null if unknown. */
  readonly isApex: boolean | null;
  /** Reason why the check has no conclusive answer, or null after a conclusive answer. */
  readonly problem: string | null;
}

/**
 * Performs the DNS lookups of a check. `serverDomain` is the setting `[server] domain`. `randomLabel` is a label without records, because
 * no owner can guess it.
 */
export const checkDnsRecords = async (
  lookups: DnsLookups,
  domain: DomainName,
  { serverDomain, randomLabel }: { readonly serverDomain: string; readonly randomLabel: string },
): Promise<DomainCheck> => {
  const questions = proofQuestions(domain, randomLabel);
  const isEnd = (name: string): boolean => isOwnTarget(name, serverDomain);
  const [chain, texts, challenge] = await Promise.all([
    lookups.chain(questions.route, isEnd),
    lookups.texts(questions.text),
    questions.challenge === null ? NOT_ASKED : lookups.chain(questions.challenge, isEnd),
  ]);
  // Addresses and zone are not looked up for a name with a CNAME record, because the lookups would return the target's addresses and
  // zone.
  const isPlain = chain.kind === 'absent';
  const [addresses, zone] = await Promise.all([
    isPlain ? lookups.addresses(questions.route) : NOT_ASKED,
    isPlain && !domain.wildcard ? lookups.zone(questions.route) : NOT_ASKED,
  ]);
  const answers: ProofAnswers = { chain, texts, addresses, challenge };
  const problem = [chain, texts].flatMap((answer) => (answer.kind === 'no-answer' ? [answer.reason] : []))[0] ?? null;
  const isUnknown = chain.kind === 'no-answer' || zone.kind === 'no-answer';
  const isApex = isUnknown ? null : zone.kind === 'found';
  return { answers, findings: extractTokens(answers, serverDomain), isApex, problem };
};

const NOT_ASKED: DnsAnswer = { kind: 'absent' };
