import { describe, expect, it } from 'vitest';
import { readRequests } from './request-reader.fixture.ts';
import { HIDDEN_REQUESTS, SMUGGLING_CORPUS } from './smuggling-corpus.fixture.ts';

const everyCut = (text: string): number[] => Array.from({ length: Math.min(text.length, 3000) }, (_, index) => index);

it('the smuggling corpus has more than 100 cases, each with a unique name', () => {
  expect(SMUGGLING_CORPUS.length).toBeGreaterThan(100);
  const names = [...SMUGGLING_CORPUS, ...HIDDEN_REQUESTS].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

describe('an ambiguous message is refused, whole and byte by byte', () => {
  it.each(SMUGGLING_CORPUS)('$name: $status', ({ bytes, status }) => {
    for (const cuts of [[], everyCut(bytes)]) {
      const { requests, problem } = readRequests(bytes, cuts);
      expect(problem?.status).toBe(status);
      expect(requests.filter(({ isComplete }) => isComplete)).toEqual([]);
    }
  });
});

describe('a message with a hidden request is parsed in only one way', () => {
  it.each(HIDDEN_REQUESTS)('$name', ({ bytes, bodies }) => {
    for (const cuts of [[], everyCut(bytes)]) {
      const { requests, problem, pendingBytes } = readRequests(bytes, cuts);
      expect(problem).toBeNull();
      expect(pendingBytes).toBe(0);
      expect(requests.map(({ content }) => content)).toEqual(bodies);
    }
  });
});
