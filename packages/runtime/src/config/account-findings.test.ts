import { problemOfPlainName, RESERVED_SUBDOMAINS } from '@tunnel/rules/names';
import { expect, test } from 'vitest';
import { RESERVED_WORDS } from './account-findings.ts';
import { loadServerConfig } from './server-config.ts';

test('the reserved words are those that registrations know', () => {
  expect([...RESERVED_WORDS].sort()).toEqual([...RESERVED_SUBDOMAINS].sort());
  for (const word of RESERVED_WORDS) expect(problemOfPlainName(word)).toBe('it is reserved');
});

test('one account may give a domain to several of its keys', () => {
  const key = (digit: string) => ({ account: 'alice', sha256: digit.repeat(64), domains: ['*.Example.org'] });
  const { auth } = loadServerConfig({ env: {}, overrides: { auth: { keys: [key('a'), key('b')] } } });
  expect(auth.keys.map(({ domains }) => domains)).toEqual([['*.example.org'], ['*.example.org']]);
});
