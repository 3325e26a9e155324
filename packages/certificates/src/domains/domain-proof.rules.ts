// What DNS says about an own domain: whose token stands there. An address of the edge proves nothing, since all tenants share it; a record that
// carries an account's token was set by whoever holds the domain.
import type { DomainName } from './domain-names.rules.ts';

/** One look-up. `absent`: the name is not there, or has no such record. `no-answer`: nobody knows, and nothing follows from it. */
export type DnsAnswer =
  | { readonly kind: 'found'; readonly values: readonly string[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'no-answer'; readonly reason: string };

/** Where to look. `route` is asked by name: of a wildcard a label that nobody could have set by itself. */
export interface ProofQuestions {
  readonly route: string;
  readonly text: string;
  /** null: no certificate of it needs one. */
  readonly challenge: string | null;
}

/** What was found at them. Chains have every name that CNAMEs led to, in order; texts have the strings of a record joined. */
export interface ProofAnswers {
  readonly chain: DnsAnswer;
  readonly texts: DnsAnswer;
  readonly addresses: DnsAnswer;
  readonly challenge: DnsAnswer;
}

export type Proof = 'found' | 'absent' | 'no-answer';

/** What one look has settled, for every account at once. */
export interface ProofFindings {
  /** Tokens that stand there, in the order in which they were found; each once. */
  readonly tokens: readonly string[];
  /** false: a look-up had no answer, so that a token which is not listed may stand there. */
  readonly complete: boolean;
}

export const PROOF_TOKEN_CHARS = 20;
/** 104 bits, of which 100 are used. */
export const PROOF_TOKEN_BYTES = 13;
const TOKEN = /^[a-z2-7]{20}$/;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const TEXT_PREFIX = 'tunnel-verify=';
const TEXT_LABEL = '_tunnel';
const CHALLENGE_LABEL = '_acme-challenge';

/** Five bits a character. */
export const proofToken = (bytes: Uint8Array): string => {
  let bits = '';
  for (const byte of bytes.subarray(0, PROOF_TOKEN_BYTES)) bits += byte.toString(2).padStart(8, '0');
  return Array.from(
    { length: PROOF_TOKEN_CHARS },
    (_, index) => ALPHABET[Number.parseInt(bits.slice(index * 5, index * 5 + 5), 2)],
  ).join('');
};

/** `randomLabel`: of chance, so that a record for one name below a wildcard is not taken for the wildcard's. */
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

/** ASCII alone, as DNS compares names; one trailing dot makes a name absolute and is no part of it. */
export const foldName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).replace(/\.$/, '');

/** People copy with quotes and spaces, and some panels keep them. */
export const foldText = (text: string): string =>
  foldName(
    text
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .trim(),
  );

/** `domain`: `[server] domain`. */
export const findingsOf = (answers: ProofAnswers, domain: string): ProofFindings => {
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

export const proofOf = (token: string, { tokens, complete }: ProofFindings): Proof => {
  if (tokens.includes(token)) return 'found';
  return complete ? 'absent' : 'no-answer';
};

export const valuesOf = (answer: DnsAnswer): readonly string[] => (answer.kind === 'found' ? answer.values : []);

/** Only the first name that is ours counts: what follows it is the operator's own affair. */
const tokenInChain = (chain: DnsAnswer, domain: string): string | null => {
  const ours = valuesOf(chain)
    .map(foldName)
    .find((name) => isOwnTarget(name, domain));
  const label = ours?.slice(0, -domain.length - 1) ?? '';
  return TOKEN.test(label) ? label : null;
};

/** Whether a chain need not be followed further: its names are the operator's from here on. */
export const isOwnTarget = (name: string, domain: string): boolean => {
  const folded = foldName(name);
  return folded === domain || folded.endsWith(`.${domain}`);
};

const tokenInText = (text: string): string | null => {
  const plain = foldText(text);
  const token = plain.startsWith(TEXT_PREFIX) ? plain.slice(TEXT_PREFIX.length) : '';
  return TOKEN.test(token) ? token : null;
};
