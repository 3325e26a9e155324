import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { type BackendUnderTest, backendConformance } from './backend.conformance.ts';
import { nameConformance } from './names/name.conformance.ts';
import { ADMIN_TOKEN, makePlatformBackend } from './platform-backend.fixture.ts';
import { ScriptedPlatform, servePlatform } from './scripted-platform.fixture.ts';

const underTest = async (isRemote: boolean): Promise<BackendUnderTest> => {
  const platform = new ScriptedPlatform();
  platform.addKey('tnl_alice-1', 'alice');
  platform.addKey('tnl_alice-2', 'alice');
  platform.addKey('tnl_bob', 'bob');
  platform.reserve('alice', 'subdomain', 'kept');
  platform.reserve('alice', 'tcp', '20042');
  platform.verify('shop.example.org', 'alice');
  platform.verify('*.example.org', 'alice');
  const server = isRemote ? await servePlatform(platform) : null;
  const where = server === null ? {} : { url: server.url, fetch: (request: Request) => fetch(request) };
  const { backend, cleanUp } = await makePlatformBackend({ clock: systemClock, platform, ...where });
  const heard = (): Promise<void> => eventually(() => expect(platform.openLines).toBe(1));
  return {
    backend,
    adminToken: ADMIN_TOKEN,
    accountKeys: ['tnl_alice-1', 'tnl_alice-2'],
    accountId: 'alice',
    otherKey: 'tnl_bob',
    otherAccountId: 'bob',
    revoke: async (key) => {
      await heard();
      platform.revokeKey(key);
    },
    other: {
      tunnel: (tunnelId) => platform.tunnels.get(tunnelId),
      setLimit: async (accountId, tunnel_limit) => {
        await heard();
        platform.setRights(accountId, { tunnel_limit });
      },
      closeAccount: async (account_id, code, message) => {
        await heard();
        platform.announce({ kind: 'account-closed', account_id, code, message });
      },
      setCap: async (accountId, cap) => {
        await heard();
        platform.setCap(accountId, cap);
      },
      setDomain: async (domain, accountId, keepsTunnels) => {
        await heard();
        platform.verify(domain, accountId, keepsTunnels);
      },
      goAway: async () => platform.goAway(),
      comeBack: async () => {
        platform.state = 'here';
      },
    },
    cleanUp: async () => {
      await server?.close();
      await cleanUp();
    },
  };
};

backendConformance('of a platform in the process', () => underTest(false));
backendConformance('of a platform over HTTP', () => underTest(true));

nameConformance('of a platform in the process', () => underTest(false));
nameConformance('of a platform over HTTP', () => underTest(true));
