import { expect, test } from 'vitest';
import { loadServerConfig } from './server-config.ts';

test('several keys of one account can have the same domain', () => {
  const key = (digit: string) => ({ account: 'alice', sha256: digit.repeat(64), domains: ['*.Example.org'] });
  const { auth } = loadServerConfig({ env: {}, overrides: { auth: { keys: [key('a'), key('b')] } } });
  expect(auth.keys.map(({ domains }) => domains)).toEqual([['*.example.org'], ['*.example.org']]);
});
