import { Secret, sha256Hex } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { backendConformance } from './backend.conformance.ts';
import { StandaloneBackend } from './standalone-backend.ts';

const keysOf = (...pairs: [account: string, key: string][]) =>
  pairs.map(([account, key]) => ({ account, sha256: sha256Hex(key) }));

backendConformance('standalone', async () => ({
  backend: new StandaloneBackend({
    adminToken: new Secret('admin-token-of-the-test'),
    keys: keysOf(['alice', 'tnl_alice-1'], ['alice', 'tnl_alice-2'], ['bob', 'tnl_bob']),
  }),
  adminToken: 'admin-token-of-the-test',
  accountKeys: ['tnl_alice-1', 'tnl_alice-2'],
  accountId: 'alice',
  otherKey: 'tnl_bob',
  otherAccountId: 'bob',
}));

it('a key id is the first 8 hex digits of the hash', async () => {
  const sha256 = sha256Hex('tnl_carol');
  const backend = new StandaloneBackend({ adminToken: new Secret('admin'), keys: [{ account: 'carol', sha256 }] });
  expect(await backend.verifyKey('tnl_carol')).toMatchObject({ ok: true, keyId: sha256.slice(0, 8) });
  expect(await backend.verifyKey('admin')).toMatchObject({ ok: true, keyId: 'admin' });
});

it('nobody gets in with the empty token of a careless set-up', async () => {
  const backend = new StandaloneBackend({ adminToken: new Secret(''), keys: [] });
  expect((await backend.verifyKey('')).ok).toBe(false);
});
