import { expect, test } from 'vitest';
import { loadServerConfig } from './server-config.ts';

test('one account may give a domain to several of its keys', () => {
  const key = (digit: string) => ({ account: 'alice', sha256: digit.repeat(64), domains: ['*.Example.org'] });
  const { auth } = loadServerConfig({ env: {}, overrides: { auth: { keys: [key('a'), key('b')] } } });
  expect(auth.keys.map(({ domains }) => domains)).toEqual([['*.example.org'], ['*.example.org']]);
});
