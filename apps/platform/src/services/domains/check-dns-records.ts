// One look at an own domain: everything that core judges a proof and the shown records by.

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
  /** A zone begins at the name; null: nobody knows. */
  readonly isApex: boolean | null;
  /** Why there was no answer that counts; null: there was one. */
  readonly problem: string | null;
}

/** `serverDomain`: `[server] domain`. `randomLabel`: a label that nobody can have set records for. */
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
  // A name that is a CNAME has neither: what its target has would be told instead.
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
