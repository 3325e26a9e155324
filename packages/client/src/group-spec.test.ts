import { inspect } from 'node:util';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { concealKey, groupWishes } from './group-spec.ts';
import { probeRulesOf } from './health-check.ts';
import { checkTunnelSpec, type TunnelSpec } from './tunnel-spec.ts';

const http = { protocol: 'http', localPort: 3000 } as const;
const grouped = { ...http, group: 'web', groupKey: 'k' } as const;
const PATH = 'begins with / and has no spaces or control characters';

describe('what cannot work is refused before anything is asked', () => {
  it.each<[string, TunnelSpec, string]>([
    ['a group without a key', { ...http, group: 'web' }, 'a group needs a group key'],
    ['a key without a group', { ...http, groupKey: 'k' }, 'a group key goes with a group'],
    ['an empty key', { ...grouped, groupKey: new Secret('') }, 'the group key is empty'],
    ['an empty name', { ...grouped, group: '' }, 'it is empty'],
    ['a long name', { ...grouped, group: 'ä'.repeat(101) }, 'longer than 100'],
    ['a name with @', { ...grouped, group: 'a@b' }, 'it has an @'],
    ['a name of two lines', { ...grouped, group: 'a\nb' }, 'cannot be printed'],
    ['a group of udp', { ...grouped, protocol: 'udp' }, 'a udp tunnel cannot be in a group'],
    ['a group of p2p', { ...grouped, protocol: 'p2p' }, 'a p2p tunnel cannot be in a group'],
    ['http without a path', { ...http, healthCheck: { type: 'http' } }, 'needs a path'],
    ['a path without /', { ...http, healthCheck: { type: 'http', path: 'health' } }, PATH],
    ['a path with a space', { ...http, healthCheck: { type: 'http', path: '/a b' } }, PATH],
    ['a path with a line break', { ...http, healthCheck: { type: 'http', path: '/a\r\nX: y' } }, PATH],
    [
      'a path over the bound',
      { ...http, healthCheck: { type: 'http', path: `/${'😀'.repeat(2100)}` } },
      'health_check.path',
    ],
    ['an interval of 0', { ...http, healthCheck: { intervalSecs: 0 } }, 'health_check.interval_secs'],
    [
      'an endless deadline',
      { ...http, healthCheck: { timeoutSecs: Number.POSITIVE_INFINITY } },
      'health_check.timeout_secs',
    ],
    ['half a failure', { ...http, healthCheck: { maxFailed: 0.5 } }, 'health_check.max_failed'],
    ['another kind of URL', { ...http, healthCheck: { alertWebhook: 'ftp://secret.test/' } }, 'http or https URL'],
    ['half a URL', { ...http, healthCheck: { alertWebhook: 'https://' } }, 'http or https URL'],
    [
      'an endless URL',
      { ...http, healthCheck: { alertWebhook: `https://a.test/${'a'.repeat(2048)}` } },
      'alert_webhook',
    ],
  ])('%s', (_, spec, words) => {
    let refusal: unknown;
    try {
      checkTunnelSpec(spec);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: 'CLIENT_USAGE', message: expect.stringContaining(words) as string });
    expect(String(refusal)).not.toContain('secret.test');
  });

  it.each<[string, TunnelSpec]>([
    ['a group', grouped],
    ['one of https', { ...grouped, protocol: 'https' }],
    ['one of tcp with a port', { ...grouped, protocol: 'tcp', remotePort: 20_001 }],
    ['a health check without a group', { ...http, healthCheck: { type: 'tcp' } }],
    ['an alert alone', { ...http, healthCheck: { alertWebhook: 'http://127.0.0.1:9/' } }],
    ['fractions', { ...http, healthCheck: { type: 'http', path: '/', intervalSecs: 0.5, timeoutSecs: 0.25 } }],
  ])('%s can', (_, spec) => {
    expect(() => checkTunnelSpec(spec)).not.toThrow();
  });
});

describe('what the edge is told', () => {
  it('is the SHA-256 of the key’s UTF-8 bytes, as sha256sum would print it', () => {
    // printf %s 'schlüssel' | sha256sum
    const hash = 'ccec7a8e3e039f0b6b308a81f438e1d07a59c8c896b4f237d10c3eecb8375ef7';
    for (const groupKey of ['schlüssel', new Secret('schlüssel')]) {
      expect(groupWishes({ group: 'web', groupKey })).toEqual({ group: 'web', group_key_hash: hash });
    }
    expect(groupWishes({})).toEqual({});
  });

  it('is nothing that the key could be read from', () => {
    const kept = concealKey({ ...grouped, groupKey: 'very secret' });
    expect(inspect(kept, { depth: 9 }) + JSON.stringify(kept)).not.toContain('very secret');
  });
});

it('a probe goes by the defaults of the specification', () => {
  expect(probeRulesOf({ type: 'tcp' })).toEqual({
    type: 'tcp',
    interval_secs: 10,
    timeout_secs: 3,
    max_failed: 3,
    expect_2xx: true,
  });
  expect(probeRulesOf({ alertWebhook: 'https://a.test/' })).toBeNull();
  expect(probeRulesOf(undefined)).toBeNull();
});
