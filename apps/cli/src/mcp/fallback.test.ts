import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { likelierError, mayFallBack, noPlatform } from './fallback.ts';

const AT = { url: 'https://platform.example', reason: 'no answer' };
const refused = new Fault('CLIENT_PLATFORM_UNREACHABLE', AT, { cause: { code: 'ECONNREFUSED' } });
const lost = new Fault('CLIENT_PLATFORM_UNREACHABLE', AT, { cause: { code: 'ECONNRESET' } });
const late = new Fault('CLIENT_API_UNREACHABLE', AT);
const inClear = new Fault('CLIENT_USAGE', { reason: 'the API key would go out in clear.' });
const off = new Fault('API_NOT_FOUND');
const unknown = new Fault('TUNNEL_UNKNOWN');

describe('a tool call falls back between edge and platform', () => {
  it.each([
    ['after a refused connection', refused, true, true],
    ['after an answer that was lost, unless it must not happen twice', lost, true, false],
    ['after no answer in time, likewise', late, true, false],
    ['where the key would go in clear', inClear, true, true],
    ['where nothing is there', off, true, true],
    ['where there is no platform', noPlatform(), true, true],
    ['never after an answer', unknown, false, false],
    ['never after a mistake of ours', new TypeError('x'), false, false],
  ])('%s', (_, error, reading, once) => {
    expect([mayFallBack(error, false), mayFallBack(error, true)]).toEqual([reading, once]);
  });
});

it("after two failures the error of the likelier server is reported, and a server's answer before all", () => {
  expect(likelierError(refused, late)).toBe(refused);
  expect(likelierError(refused, inClear)).toBe(refused);
  expect(likelierError(inClear, lost)).toBe(lost);
  expect(likelierError(noPlatform(), late)).toBe(late);
  expect(likelierError(refused, unknown)).toBe(unknown);
});
