// Properties that hold for any bytes from a visitor, with a short run in `npm test` and a long run in tests/soak.
import { seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { mutated, validMessage } from './message-generator.fixture.ts';
import { type Reading, readRequests } from './request-reader.fixture.ts';
import { parseResponseHead } from './response-head.ts';
import { requestHeadFor } from './rewrite.ts';

const OPTIONS = { visitorAddress: '203.0.113.7', proto: 'http', hostHeader: 'keep' } as const;

const cutsOf = (length: number, chance: () => number): number[] =>
  Array.from({ length: Math.floor(chance() * 6) }, () => Math.floor(chance() * (length + 1)));

/**
 * Returns the observable part of a reading. For an invalid body, the amount read before the error depends on the cuts, so it is left out.
 */
const seenOf = ({ requests, problem, pendingBytes, surplusBytes }: Reading): unknown => ({
  problem,
  pendingBytes: problem === null ? pendingBytes : 0,
  surplusBytes,
  requests: requests.map(({ head, content, passedOn, isComplete }) => {
    const isKnown = isComplete || problem === null;
    return { text: head.text, isComplete, content: isKnown ? content : '', passedOn: isKnown ? passedOn : '' };
  }),
});

/** Checks that the service reads the forwarded bytes as one request, or as a part of one request, whatever the visitor sent. */
const expectOneRequest = (reading: Reading): void => {
  for (const { head, content, passedOn, isComplete } of reading.requests) {
    // A request of HTTP/1.0 may lack a host. Without a host it belongs to no tunnel, so no service gets it.
    if (head.host === '') continue;
    const service = readRequests(requestHeadFor(head, OPTIONS) + passedOn);
    expect(service.problem).toBeNull();
    expect(service.requests).toHaveLength(1);
    expect(service.pendingBytes + service.surplusBytes).toBe(0);
    expect(service.requests[0]?.isComplete).toBe(isComplete);
    if (isComplete) expect(service.requests[0]?.content).toBe(content);
  }
};

const repeat = (runs: number, seed: number, check: (chance: () => number) => void): void => {
  for (let run = 0; run < runs; run += 1) {
    try {
      check(seededRandom(seed + run));
    } catch (error) {
      throw new Error(`seed ${seed + run}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }
};

export const describeHttp1Fuzz = (runs: number, seed: number): void => {
  it('valid requests are all parsed, at any split', () => {
    repeat(runs, seed, (chance) => {
      const text = validMessage(chance);
      const reading = readRequests(text, cutsOf(text.length, chance));
      expect({ text, problem: reading.problem, pendingBytes: reading.pendingBytes }).toEqual({
        text,
        problem: null,
        pendingBytes: 0,
      });
      expect(reading.requests.every(({ isComplete }) => isComplete)).toBe(true);
      expectOneRequest(reading);
    });
  });

  it('any bytes are parsed the same at any split, and the service never sees one request as two', () => {
    repeat(runs, seed, (chance) => {
      const text = mutated(validMessage(chance), chance);
      const whole = readRequests(text);
      expect(seenOf(readRequests(text, cutsOf(text.length, chance)))).toEqual(seenOf(whole));
      expectOneRequest(whole);
    });
  });

  it('no response head makes the parser throw', () => {
    repeat(runs, seed, (chance) => {
      const text = mutated(validMessage(chance), chance).replace(/^.*?\r\n/s, 'HTTP/1.1 200 OK\r\n');
      const end = text.indexOf('\r\n\r\n');
      const head = parseResponseHead(end === -1 ? text : text.slice(0, end + 4), { method: 'GET', upgrade: null });
      expect(['response', 'problem']).toContain(head.kind);
    });
  });
};
