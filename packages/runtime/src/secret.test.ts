import { format, inspect } from 'node:util';
import { expect, test } from 'vitest';
import { equalInConstantTime, randomId, randomToken, Secret, sha256Hex } from './secret.ts';

test('a secret is masked in all output and readable only with reveal()', () => {
  const secret = new Secret('open-sesame');
  const printed = [
    String(secret),
    `${String(secret)}`,
    JSON.stringify({ secret }),
    inspect({ deep: { secret } }),
    format('%s %o %j', secret, secret, secret),
    Object.entries(secret).join(),
  ].join(' ');
  expect(printed).not.toContain('open-sesame');
  expect(printed).toContain('[secret]');
  expect(secret.reveal()).toBe('open-sesame');
});

test('sha256Hex matches the published value', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

test('equalInConstantTime compares texts of any length', () => {
  expect(equalInConstantTime('a', 'a')).toBe(true);
  expect(equalInConstantTime('a', 'b')).toBe(false);
  expect(equalInConstantTime('a', 'aa')).toBe(false);
  expect(equalInConstantTime('', '')).toBe(true);
  expect(equalInConstantTime('é', 'e\u0301')).toBe(false);
});

test('random tokens and ids have the documented form and do not repeat', () => {
  expect(randomToken()).toMatch(/^[\w-]{43}$/);
  expect(randomToken(16)).toMatch(/^[\w-]{22}$/);
  expect(randomId('tun')).toMatch(/^tun_[0-9A-Za-z]{20}$/);
  expect(randomId('tun_')).toMatch(/^tun_[0-9A-Za-z]{20}$/);
  expect(new Set(Array.from({ length: 1000 }, () => randomId('x'))).size).toBe(1000);
});
