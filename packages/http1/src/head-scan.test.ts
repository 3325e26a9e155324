import { seededRandom } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { fieldValueOf } from './fields.ts';
import { NOT_PLAIN, newPlainHead, scanRequestHead, scanResponseHead } from './head-scan.ts';
import { findHeadEnd, newHeadSearch } from './head-search.ts';
import { HTTP1_BOUNDS } from './limits.ts';
import { type Chance, mutated, validMessage } from './message-generator.fixture.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';
import { latin1Bytes } from './request-reader.fixture.ts';
import { parseResponseHead, type ResponseHead } from './response-head.ts';
import { HIDDEN_REQUESTS, SMUGGLING_CORPUS } from './smuggling-corpus.fixture.ts';

const head = newPlainHead();

const framingOf = (): unknown => {
  if (head.isChunked) return { kind: 'chunked' };
  return head.contentLength === -1 ? undefined : { kind: 'length', length: head.contentLength };
};

/** Returns the end of the head according to the full parser; -1 if there is no complete head, or empty lines before the head. */
const endOf = (bytes: Uint8Array): number => {
  const search = newHeadSearch();
  const end = findHeadEnd(bytes, 0, bytes.length, search, HTTP1_BOUNDS);
  return end < 0 || search.leadBytes > 0 ? -1 : end;
};

/** Returns whether the head is plain. If so, checks that the full parser agrees with the scan. */
const expectSameRequest = (text: string): boolean => {
  const bytes = latin1Bytes(text);
  const end = scanRequestHead(bytes, 0, bytes.length, head);
  if (end === NOT_PLAIN) return false;
  expect(end).toBe(endOf(bytes));
  const full = parseRequestHead(text.slice(0, end)) as RequestHead;
  expect(full).toMatchObject({ kind: 'request', version: '1.1', upgrade: null });
  expect(text.slice(head.targetFrom, head.targetTo)).toBe(full.path);
  expect(text.slice(0, head.targetFrom - 1)).toBe(full.method);
  expect(full.framing).toEqual(framingOf() ?? { kind: 'none' });
  expect(text.slice(head.lastFrom - 2, end)).toMatch(/^\r\n[^\r\n]+\r\n\r\n$/);
  return true;
};

const expectSameResponse = (text: string, method = 'GET'): boolean => {
  const bytes = latin1Bytes(text);
  const end = scanResponseHead(bytes, 0, bytes.length, head);
  if (end === NOT_PLAIN) return false;
  expect(end).toBe(endOf(bytes));
  const full = parseResponseHead(text.slice(0, end), { method, upgrade: null }) as ResponseHead;
  expect(full).toMatchObject({ kind: 'response', version: '1.1', status: head.status, interim: false });
  const isBodiless = full.status === 204 || full.status === 304;
  if (!isBodiless) expect(full.framing).toEqual(framingOf() ?? { kind: 'until-close' });
  expect(head.typeTo === 0 ? null : text.slice(head.typeFrom, head.typeTo)).toBe(
    fieldValueOf(full.headers, 'content-type'),
  );
  return true;
};

const STATUS_LINES = [
  '200 OK',
  '204 ',
  '304 Not Modified',
  '404',
  '599 \xe4',
  '100 Continue',
  '600 x',
  '20 OK',
  '201\tx',
];
const TYPES = ['Content-Type: text/plain\r\n', 'content-type:\r\n', 'Content-type: a/b \r\n', ''];

/** Turns a request into a response: a status line, then the headers of the request. */
const asResponse = (text: string, chance: Chance): string => {
  const pick = (from: readonly string[]): string => from[Math.floor(chance() * from.length)] as string;
  const line = `HTTP/1.1 ${pick(STATUS_LINES)}\r\n${pick(TYPES)}${pick(TYPES)}`;
  return line + text.slice(text.indexOf('\r\n') + 2);
};

describe('the quick scan of a head agrees with the full parser', () => {
  it('on random requests, more than 200 of them plain', () => {
    let plain = 0;
    for (let seed = 1; seed <= 600; seed += 1) {
      const chance = seededRandom(seed);
      const text = validMessage(chance);
      if (expectSameRequest(text)) plain += 1;
      for (let count = 0; count < 3; count += 1) expectSameRequest(mutated(text, chance));
    }
    expect(plain).toBeGreaterThan(200);
  });

  it('on random responses, more than 100 of them plain', () => {
    let plain = 0;
    for (let seed = 1; seed <= 600; seed += 1) {
      const chance = seededRandom(seed);
      const text = asResponse(validMessage(chance), chance);
      if (expectSameResponse(text)) plain += 1;
      for (let count = 0; count < 3; count += 1) expectSameResponse(mutated(text, chance));
    }
    expect(plain).toBeGreaterThan(100);
  });

  it('on ambiguous messages of the smuggling corpus', () => {
    for (const { bytes } of [...SMUGGLING_CORPUS, ...HIDDEN_REQUESTS]) {
      expectSameRequest(bytes);
      expectSameResponse(`HTTP/1.1 200 OK\r\n${bytes.slice(bytes.indexOf('\r\n') + 2)}`);
    }
  });

  it('on heads at the size limits', () => {
    const withFields = (count: number): string => `GET / HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(count - 1)}\r\n`;
    const ofLength = (length: number): string => {
      const start = 'GET / HTTP/1.1\r\nHost: x\r\na: ';
      return `${start}${'a'.repeat(length - start.length - 4)}\r\n\r\n`;
    };
    expect(expectSameRequest(withFields(HTTP1_BOUNDS.fieldsMax))).toBe(true);
    expect(expectSameRequest(withFields(HTTP1_BOUNDS.fieldsMax + 1))).toBe(false);
    expect(expectSameRequest(ofLength(HTTP1_BOUNDS.headMaxBytes))).toBe(true);
    expect(expectSameRequest(ofLength(HTTP1_BOUNDS.headMaxBytes + 1))).toBe(false);
  });

  it('and never reads beyond the given range', () => {
    const text = 'GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n';
    const bytes = latin1Bytes(`####${text}hello`);
    for (let end = 4; end < 4 + text.length; end += 1) expect(scanRequestHead(bytes, 4, end, head)).toBe(NOT_PLAIN);
    expect(scanRequestHead(bytes, 4, bytes.length, head)).toBe(4 + text.length);
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n';
    const answered = latin1Bytes(`####${answer}hello`);
    for (let end = 4; end < 4 + answer.length; end += 1) {
      expect(scanResponseHead(answered, 4, end, head)).toBe(NOT_PLAIN);
    }
    expect(scanResponseHead(answered, 4, answered.length, head)).toBe(4 + answer.length);
  });
});
