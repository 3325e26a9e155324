import { describe, expect, it } from 'vitest';
import { checkInspectorRequest, type GateRequest } from './inspector.ts';

const OWN = { port: 4300, token: 'the-token' };
const get: GateRequest = {
  method: 'GET',
  fieldNames: ['host', 'accept', 'x-inspector-token'],
  host: '127.0.0.1:4300',
  origin: undefined,
  fetchSite: undefined,
  token: undefined,
};
const post: GateRequest = { ...get, method: 'POST', origin: 'http://127.0.0.1:4300', token: 'the-token' };

describe('the inspector accepts', () => {
  it.each([
    ['a person who types its address', { ...get, fetchSite: 'none' }],
    ['by the name localhost', { ...get, host: 'localhost:4300' }],
    ['its own page', { ...get, fetchSite: 'same-origin' }],
    ['HEAD', { ...get, method: 'HEAD' }],
    ['a replay that its page asks for', { ...post, fetchSite: 'same-origin' }],
    ['a replay by the name localhost', { ...post, host: 'LocalHost:4300', origin: 'http://localhost:4300' }],
  ])('%s', (_, request) => {
    expect(checkInspectorRequest(request, OWN)).toBeNull();
  });
});

describe('the inspector refuses', () => {
  it.each([
    ['a name that was made to point at it', { ...get, host: 'evil.example:4300' }, 421],
    ['a name that only looks like its own', { ...get, host: '127.0.0.1.evil.example:4300' }, 421],
    ['another port', { ...get, host: '127.0.0.1:4301' }, 421],
    ['no port', { ...get, host: '127.0.0.1' }, 421],
    ['no host', { ...get, host: undefined }, 421],
    ['IPv6 and other addresses', { ...get, host: '[::1]:4300' }, 421],
    ['what another site asks for', { ...get, fetchSite: 'cross-site' }, 403],
    ['what another port of this host asks for', { ...get, fetchSite: 'same-site' }, 403],
    ['a replay without Origin', { ...post, origin: undefined }, 403],
    ['a replay of a sandboxed page', { ...post, origin: 'null' }, 403],
    ['a replay from another origin', { ...post, origin: 'http://evil.example' }, 403],
    ['a replay from another port', { ...post, origin: 'http://127.0.0.1:3000' }, 403],
    ['a replay from its other name', { ...post, origin: 'http://localhost:4300' }, 403],
    ['a replay over another scheme', { ...post, origin: 'https://127.0.0.1:4300' }, 403],
    ['a replay without the token', { ...post, token: undefined }, 403],
    ['a replay with another token', { ...post, token: 'the-tokem' }, 403],
    ['other methods', { ...post, method: 'DELETE' }, 405],
    ['preflights', { ...get, method: 'OPTIONS' }, 405],
  ])('%s', (_, request, status) => {
    expect(checkInspectorRequest(request, OWN)).toMatchObject({ status });
  });
});

describe('a request that came through a proxy or a tunnel', () => {
  it.each([
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-anything',
    'forwarded',
    'via',
    'x-real-ip',
  ])('is refused because of the %s header, whatever the Host header says', (field) => {
    const fieldNames = [...get.fieldNames, field];
    for (const request of [get, post, { ...get, host: 'web.example.com' }]) {
      expect(checkInspectorRequest({ ...request, fieldNames }, OWN)).toMatchObject({ status: 403 });
    }
  });
});
