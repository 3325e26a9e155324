import { describe, expect, it } from 'vitest';
import {
  findHeadEnd,
  HEAD_BAD_LINE,
  HEAD_INCOMPLETE,
  HEAD_TOO_LONG,
  newHeadSearch,
  resetHeadSearch,
} from './head-search.ts';
import { latin1Bytes } from './request-reader.fixture.ts';

const BOUNDS = { headMaxBytes: 40, emptyLinesMax: 2 };
const HEAD = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** Returns an error code or the length of the head, and the number of bytes in empty lines before the head. */
const search = (text: string, pieceBytes: number): { found: number; leadBytes: number } => {
  const state = newHeadSearch();
  const bytes = latin1Bytes(text);
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    const found = findHeadEnd(bytes, from, Math.min(bytes.length, from + pieceBytes), state, BOUNDS);
    if (found !== HEAD_INCOMPLETE)
      return { found: found < 0 ? found : found - state.leadBytes, leadBytes: state.leadBytes };
  }
  return { found: HEAD_INCOMPLETE, leadBytes: state.leadBytes };
};

describe.each([1, 2, 3, 7, 1000])('the search for the end of a head in pieces of %i', (pieceBytes) => {
  it.each([
    [HEAD, HEAD.length, 0],
    [`${HEAD}${HEAD}`, HEAD.length, 0],
    [`${HEAD}\n`, HEAD.length, 0],
    [`\r\n${HEAD}`, HEAD.length, 2],
    [`\r\n\r\n${HEAD}`, HEAD.length, 4],
    [`\r\n\r\n\r\n${HEAD}`, HEAD_BAD_LINE, 6],
    [`\n${HEAD}`, HEAD_BAD_LINE, 0],
    ['GET / HTTP/1.1\n', HEAD_BAD_LINE, 0],
    ['GET / HTTP/1.1\r\nHost: a\n', HEAD_BAD_LINE, 0],
    ['GET / HTTP/1.1\r\n\n', HEAD_BAD_LINE, 0],
    ['GET / HTTP/1.1\r\nHost: a\r\n\r', HEAD_INCOMPLETE, 0],
    ['\r', HEAD_INCOMPLETE, 0],
    ['x'.repeat(40), HEAD_INCOMPLETE, 0],
    ['x'.repeat(41), HEAD_TOO_LONG, 0],
    [`\r\n${'x'.repeat(36)}\r\n\r\n`, 40, 2],
    [`${'x'.repeat(37)}\r\n\r\n`, HEAD_TOO_LONG, 0],
  ])('%j', (text, found, leadBytes) => {
    expect(search(text, pieceBytes)).toEqual({ found, leadBytes });
  });
});

it('the head search starts over after a reset', () => {
  const state = newHeadSearch();
  const bytes = latin1Bytes(`${HEAD}${HEAD}`);
  const first = findHeadEnd(bytes, 0, bytes.length, state, BOUNDS);
  resetHeadSearch(state);
  expect(state).toEqual(newHeadSearch());
  expect(findHeadEnd(bytes, first, bytes.length, state, BOUNDS)).toBe(bytes.length);
});

it('the head search ignores bytes outside of its range', () => {
  const bytes = latin1Bytes(`\n\n${HEAD.slice(0, -2)}\n\r\n\r\n`);
  expect(findHeadEnd(bytes, 2, HEAD.length, newHeadSearch(), BOUNDS)).toBe(HEAD_INCOMPLETE);
});

it.each([100, 127, 128, 129, 5000])(
  'the head search finds the end of a line of %i bytes, and never looks beyond its range',
  (bytes) => {
    const bounds = { headMaxBytes: 10_000, emptyLinesMax: 0 };
    const head = `GET /${'x'.repeat(bytes - 6)}\n`;
    const bare = latin1Bytes(head);
    expect(findHeadEnd(bare, 0, bare.length, newHeadSearch(), bounds)).toBe(HEAD_BAD_LINE);
    expect(findHeadEnd(bare, 0, bare.length - 1, newHeadSearch(), bounds)).toBe(HEAD_INCOMPLETE);
    const whole = latin1Bytes(`${head.slice(0, -1)}\r\n\r\n`);
    expect(findHeadEnd(whole, 0, whole.length, newHeadSearch(), bounds)).toBe(whole.length);
  },
);
