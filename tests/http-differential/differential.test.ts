// Compares the product's HTTP/1.1 reader with Node.js's strict parser over real sockets: a request that our reader takes as complete must
// be the same for Node.js.
// DIFFERENTIAL_RUNS=50000 DIFFERENTIAL_SEED=7 npx vitest run --project system tests/http-differential
import { METHODS } from 'node:http';
import { randomCases, seededRandom } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mutated, validMessage } from '../../packages/http1/src/message-generator.fixture.ts';
import { latin1Bytes, type Reading, readRequests } from '../../packages/http1/src/request-reader.fixture.ts';
import { HIDDEN_REQUESTS, SMUGGLING_CORPUS } from '../../packages/http1/src/smuggling-corpus.fixture.ts';
import { NodeReader, type NodeReading } from './node-reader.fixture.ts';

const RUNS = randomCases(Number(process.env['DIFFERENTIAL_RUNS'] ?? 2500));
const SEED = Number(process.env['DIFFERENTIAL_SEED'] ?? 1);
const AT_ONCE = 16;

/** Messages that our reader accepts and Node.js rejects, with the reason why that is right. */
const EXCEPTIONS: readonly { readonly why: string; applies(ours: Reading, theirs: NodeReading): boolean }[] = [
  {
    why: 'any token is a method (RFC 9110, 9.1); Node knows a list of them',
    applies: (ours, theirs) =>
      theirs.refusal === 'HPE_INVALID_METHOD' && ours.requests.some(({ head }) => !METHODS.includes(head.method)),
  },
];

const node = new NodeReader();
beforeAll(() => node.start());
afterAll(() => node.stop());

const complain = (what: string, text: string, seen: unknown): string =>
  `${what}: ${JSON.stringify(text)} ${JSON.stringify(seen)}`;

/** Returns a description of the difference, or null if both readers agree as far as required. */
const disagreement = async (text: string): Promise<string | null> => {
  const ours = readRequests(text);
  const theirs = await node.read(latin1Bytes(text));
  const complete = ours.requests.filter(({ isComplete }) => isComplete);
  const isWhole = ours.problem === null && ours.pendingBytes === 0 && complete.length === ours.requests.length;
  // Bytes after the last request of a connection do not count: our reader ignores them, and Node.js rejects them.
  const isRefused = isWhole && theirs.refusal !== null && ours.surplusBytes === 0;
  if (isRefused && !EXCEPTIONS.some(({ applies }) => applies(ours, theirs))) {
    return complain('Node refuses what we accept', text, theirs.refusal);
  }
  const contents = complete.map(({ content }) => content);
  const shared =
    theirs.refusal === null && isWhole ? contents.length : Math.min(contents.length, theirs.contents.length);
  if (JSON.stringify(contents.slice(0, shared)) !== JSON.stringify(theirs.contents.slice(0, shared))) {
    return complain('two readings', text, { ours: contents, theirs: theirs.contents });
  }
  const isMore = isWhole && theirs.contents.length > contents.length;
  return isMore ? complain('Node sees more requests', text, { ours: contents, theirs: theirs.contents }) : null;
};

const disagreements = async (texts: readonly string[]): Promise<string[]> => {
  const found: string[] = [];
  for (let from = 0; from < texts.length; from += AT_ONCE) {
    const results = await Promise.all(texts.slice(from, from + AT_ONCE).map(disagreement));
    found.push(...results.filter((result) => result !== null));
  }
  return found;
};

describe('the HTTP/1.1 reader compared with the parser of Node.js', () => {
  it('reads valid requests with the same bodies as Node.js', async () => {
    const texts = Array.from({ length: RUNS / 5 }, (_, index) => validMessage(seededRandom(SEED + index)));
    expect(await disagreements(texts)).toEqual([]);
  });

  it('accepts no mutated request that Node.js rejects or reads differently, except requests with unknown methods', {
    timeout: 10 * 60_000,
  }, async () => {
    const texts = Array.from({ length: RUNS }, (_, index) => {
      const chance = seededRandom(SEED + index);
      return mutated(validMessage(chance), chance);
    });
    expect(await disagreements(texts)).toEqual([]);
  });

  it('agrees with Node.js on the corpus of smuggling attempts', async () => {
    expect(await disagreements([...SMUGGLING_CORPUS, ...HIDDEN_REQUESTS].map(({ bytes }) => bytes))).toEqual([]);
  });
});
