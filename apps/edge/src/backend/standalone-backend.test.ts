import { Secret, sha256Hex, systemClock } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { backendConformance } from './backend.conformance.ts';
import { nameConformance } from './names/name.conformance.ts';
import { quiet } from './platform-backend.fixture.ts';
import { StandaloneBackend } from './standalone-backend.ts';

const keysOf = (
  ...pairs: [account: string, key: string, reserved?: readonly string[], domains?: readonly string[]][]
) =>
  pairs.map(([account, key, reserved = [], domains = []]) => ({ account, sha256: sha256Hex(key), reserved, domains }));

const backendOf = (given: { readonly adminToken?: string; readonly keys: ReturnType<typeof keysOf> }) =>
  new StandaloneBackend({
    clock: systemClock,
    logger: quiet,
    adminToken: new Secret(given.adminToken ?? 'admin-token-of-the-test'),
    names: { hold_days: 30, assigned_hold_hours: 24, grace_days: 7 },
    keys: given.keys,
  });

const underTest = async () => ({
  backend: backendOf({
    keys: keysOf(
      ['alice', 'tnl_alice-1', ['kept', 'tcp/20042'], ['shop.example.org', '*.example.org']],
      ['alice', 'tnl_alice-2'],
      ['bob', 'tnl_bob'],
    ),
  }),
  adminToken: 'admin-token-of-the-test',
  accountKeys: ['tnl_alice-1', 'tnl_alice-2'] as const,
  accountId: 'alice',
  otherKey: 'tnl_bob',
  otherAccountId: 'bob',
});

backendConformance('standalone', underTest);
nameConformance('standalone', underTest);

it('a key id is the first 8 hex digits of the key’s hash', async () => {
  const backend = backendOf({ adminToken: 'admin', keys: keysOf(['carol', 'tnl_carol']) });
  expect(await backend.verifyKey('tnl_carol')).toMatchObject({ ok: true, keyId: sha256Hex('tnl_carol').slice(0, 8) });
  expect(await backend.verifyKey('admin')).toMatchObject({ ok: true, keyId: 'admin' });
});

it('an empty admin token in the config admits no client', async () => {
  expect((await backendOf({ adminToken: '', keys: [] }).verifyKey('')).ok).toBe(false);
});
