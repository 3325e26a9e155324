// Proof of domain ownership in DNS. An address record to the edge proves nothing, because tenants share the address; a record with an
// account's token was set by the owner of the domain.
import type { DomainName } from './domain-names.rules.ts';

/** Result of a lookup. `absent`: the name or record does not exist. `no-answer`: unknown, without consequences. */
export type DnsAnswer =
  | { readonly kind: 'found'; readonly values: readonly string[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'no-answer'; readonly reason: string };

/** Names to look up. For a wildcard, `route` has a random label that cannot have a separate record. */
export interface ProofQuestions {
  readonly route: string;
  readonly text: string;
  /** DNS name of the certificate challenge to look up. Null if no certificate needs a challenge record. */
  readonly challenge: string | null;
}

/** Answers to the lookups. `chain` has every CNAME target in order; `texts` has the joined strings of every record. */
export interface ProofAnswers {
  readonly chain: DnsAnswer;
  readonly texts: DnsAnswer;
  readonly addresses: DnsAnswer;
  readonly challenge: DnsAnswer;
}

export type Proof = 'found' | 'absent' | 'no-answer';

/** Result of a domain's DNS check, for all accounts with the domain. */
export interface ProofFindings {
  /** Proof tokens found in DNS, in order and without duplicates. */
  readonly tokens: readonly string[];
  /** False if a lookup had no answer, so that a token missing here may still exist. */
  readonly complete: boolean;
}

export const PROOF_TOKEN_CHARS = 20;
/** Number of random bytes in a domain's proof token: 104 bits, of which 100 are used. */
export const PROOF_TOKEN_BYTES = 13;
const TOKEN = /^[a-z2-7]{20}$/;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const TEXT_PREFIX = 'tunnel-verify=';
const TEXT_LABEL = '_tunnel';
const CHALLENGE_LABEL = '_acme-challenge';

/** Encodes random bytes as a domain's proof token, five bits per character. */
export const proofToken = (bytes: Uint8Array): string => {
  let bits = '';
  for (const byte of bytes.subarray(0, PROOF_TOKEN_BYTES)) bits += byte.toString(2).padStart(8, '0');
  return Array.from(
    { length: PROOF_TOKEN_CHARS },
    (_, index) => ALPHABET[Number.parseInt(bits.slice(index * 5, index * 5 + 5), 2)],
  ).join('');
};

/** `randomLabel` must be random, so that a record below a wildcard is not mistaken for the wildcard. */
export const proofQuestions = ({ host, wildcard }: DomainName, randomLabel: string): ProofQuestions => ({
  route: wildcard ? `${randomLabel}.${host}` : host,
  text: `${TEXT_LABEL}.${host}`,
  challenge: wildcard ? challengeName(host) : null,
});

export const challengeName = (host: string): string => `${CHALLENGE_LABEL}.${host}`;
export const cnameTarget = (token: string, domain: string): string => `${token}.${domain}`;
export const challengeTarget = (token: string, domain: string): string => `${token}.${challengeName(domain)}`;
export const proofText = (token: string): string => TEXT_PREFIX + token;
export const proofTextName = (host: string): string => `${TEXT_LABEL}.${host}`;

/** Folds ASCII only, as DNS compares names. A trailing dot makes a name absolute and is removed. */
export const foldName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).replace(/\.$/, '');

/** Removes quotes and blanks from a TXT record that people copy and some DNS panels keep. */
export const foldText = (text: string): string =>
  foldName(
    text
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .trim(),
  );

/** Extracts the proof tokens from DNS answers. `domain` is `[server] domain`. */
export const extractTokens = (answers: ProofAnswers, domain: string): ProofFindings => {
  const { chain, texts } = answers;
  const tokens = new Set<string>();
  const routed = tokenInChain(chain, domain);
  if (routed !== null) tokens.add(routed);
  for (const text of valuesOf(texts)) {
    const token = tokenInText(text);
    if (token !== null) tokens.add(token);
  }
  return { tokens: [...tokens], complete: chain.kind !== 'no-answer' && texts.kind !== 'no-answer' };
};

export const judgeProof = (token: string, { tokens, complete }: ProofFindings): Proof => {
  if (tokens.includes(token)) return 'found';
  return complete ? 'absent' : 'no-answer';
};

export const valuesOf = (answer: DnsAnswer): readonly string[] => (answer.kind === 'found' ? answer.values : []);

/** Returns the proof token in a chain of CNAMEs. Only the first name below the edge's domain counts; later names belong to the operator. */
const tokenInChain = (chain: DnsAnswer, domain: string): string | null => {
  const ours = valuesOf(chain)
    .map(foldName)
    .find((name) => isOwnTarget(name, domain));
  const label = ours?.slice(0, -domain.length - 1) ?? '';
  return TOKEN.test(label) ? label : null;
};

/** Returns whether a chain has reached the operator's names and need not be followed further. */
export const isOwnTarget = (name: string, domain: string): boolean => {
  const folded = foldName(name);
  return folded === domain || folded.endsWith(`.${domain}`);
};

const tokenInText = (text: string): string | null => {
  const plain = foldText(text);
  const token = plain.startsWith(TEXT_PREFIX) ? plain.slice(TEXT_PREFIX.length) : '';
  return TOKEN.test(token) ? token : null;
};
