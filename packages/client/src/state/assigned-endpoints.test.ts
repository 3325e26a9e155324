import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '@tunnel/runtime';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rememberedKey, specOfTunnel, type TunnelOptions } from '../tunnels/tunnel-spec.ts';
import {
  ASSIGNED_ENDPOINTS_MAX,
  ASSIGNED_WRITE_MS,
  AssignedEndpoints,
  chooseRemembered,
  mergeRemembered,
  type RememberedEndpoint,
} from './assigned-endpoints.ts';

const endpoint = (value: string, usedAt: number, more: Partial<RememberedEndpoint> = {}): RememberedEndpoint => ({
  key: 'k',
  value,
  name: 'web',
  usedAt,
  holder: null,
  ...more,
});

describe('the key of a remembered endpoint', () => {
  const where = { server: 'edge:4040', account: 'ann@example.com', name: 'web' };
  const keyOf = (tunnel: TunnelOptions, more = {}) => rememberedKey(specOfTunnel(tunnel), { ...where, ...more });

  it('holds server, account, protocol and target for a subdomain, and the tunnel name for a port', () => {
    const http = { protocol: 'http', localPort: 3000 } as const;
    expect(keyOf(http)).toBe('["edge:4040","ann@example.com","http","127.0.0.1:3000"]');
    expect(keyOf(http)).toBe(keyOf({ ...http, localHost: '127.0.0.1' }, { name: 'other' }));
    const others = [
      keyOf({ ...http, localPort: 3001 }),
      keyOf({ ...http, protocol: 'https' }),
      keyOf(http, { server: 'other:4040' }),
      keyOf(http, { account: 'bob@example.com' }),
      keyOf({ protocol: 'http', files: { dir: '/srv/dist' } }),
    ];
    expect(new Set([keyOf(http), ...others]).size).toBe(6);
    expect(keyOf({ protocol: 'tcp', localPort: 22 })).toBe('["edge:4040","ann@example.com","tcp","name:web"]');
  });

  it.each([
    { protocol: 'http', localPort: 1, subdomain: 'shop' },
    { protocol: 'http', localPort: 1, domain: 'shop.example.com' },
    { protocol: 'http', localPort: 1, group: 'shop' },
    { protocol: 'tcp', localPort: 1, remotePort: 20_042 },
    { protocol: 'tls', localPort: 1, subdomain: 'vault' },
    { protocol: 'p2p', localPort: 1, p2pName: 'db' },
  ] as const)('is null when the owner chose the endpoint: %j', (spec) => {
    expect(keyOf(spec)).toBeNull();
  });
});

describe('the choice of a remembered endpoint', () => {
  const free = (): boolean => false;

  it('prefers the same tunnel name, then the latest use, and skips endpoints in use', () => {
    const all = [endpoint('old', 1), endpoint('new', 3), endpoint('other', 9, { key: 'else' })];
    expect(chooseRemembered(all, { key: 'k', name: 'web' }, free)?.value).toBe('new');
    const named = [endpoint('old', 1), endpoint('new', 3, { name: 'api' })];
    expect(chooseRemembered(named, { key: 'k', name: 'web' }, free)?.value).toBe('old');
    expect(chooseRemembered(all, { key: 'k', name: 'web' }, ({ value }) => value === 'new')?.value).toBe('old');
    expect(chooseRemembered(all, { key: 'none', name: 'web' }, free)).toBeNull();
  });

  it('keeps only the most recently used endpoints', () => {
    const max = ASSIGNED_ENDPOINTS_MAX;
    const all = Array.from({ length: max }, (_, at) => endpoint(`name-${at}`, at + 1));
    const changes = new Map([['["k","late"]', endpoint('late', 1000)]]);
    const merged = mergeRemembered(all, changes);
    expect([merged.length, merged[0]?.value, merged.at(-1)?.value]).toEqual([max, 'late', 'name-1']);
    expect(mergeRemembered(merged, new Map([['["k","late"]', null]]))[0]?.value).toBe(`name-${max - 1}`);
  });
});

describe('the file of remembered endpoints', () => {
  let home: TemporaryDirectory;
  let clock: FakeClock;
  beforeEach(async () => {
    home = await temporaryDirectory();
    clock = new FakeClock(1000);
  });
  afterEach(() => home.close());

  const logger = createLogger({ level: 'silent', format: 'json' });
  const open = (isForgetful = false) => new AssignedEndpoints({ dir: home.path, clock, logger, isForgetful });
  const path = (): string => join(home.path, 'assigned.json');
  const given = (value: string, name = 'web') => ({ key: 'k', value, name });

  it('gives the next run the same endpoint, and is readable by its user only', () => {
    for (let run = 0; run < 3; run += 1) {
      const client = open();
      const asked = client.take('k', 'web');
      expect(asked).toBe(run === 0 ? null : 'brisk-otter');
      client.given(given('brisk-otter'), asked);
      client.close();
    }
    expect(statSync(path()).mode & 0o777).toBe(0o600);
  });

  it('gives two clients two endpoints, and the same ones after each restart', async () => {
    const start = async (got: (asked: string | null) => string) => {
      const client = open();
      const asked = client.take('k', 'web');
      client.given(given(got(asked)), asked);
      await clock.advance(ASSIGNED_WRITE_MS);
      return { client, asked };
    };
    const first = await start(() => 'one');
    const second = await start(() => 'two');
    expect([first.asked, second.asked]).toEqual([null, null]);
    // Restarts the second client while the first client runs.
    second.client.close();
    const again = await start((asked) => asked ?? 'wrong');
    expect(again.asked).toBe('two');
    first.client.close();
    expect((await start((asked) => asked ?? 'wrong')).asked).toBe('one');
  });

  it('is written soon after an endpoint is assigned, so that a killed client loses nothing', async () => {
    open().given(given('brisk-otter'), null);
    await clock.advance(ASSIGNED_WRITE_MS);
    // Replaces the process id in the file by an unused number, as if the process had been killed.
    writeFileSync(path(), readFileSync(path(), 'utf8').replace(`"pid":${process.pid}`, '"pid":999999999'));
    expect(open().take('k', 'web')).toBe('brisk-otter');
  });

  it('drops an endpoint that the edge did not assign again', () => {
    const first = open();
    first.given(given('lost'), null);
    first.close();
    const second = open();
    expect(second.take('k', 'web')).toBe('lost');
    second.given(given('new'), 'lost');
    second.close();
    expect(readFileSync(path(), 'utf8')).not.toContain('lost');
  });

  it('drops all endpoints of a key when a new name is wanted, but keeps other keys', () => {
    const first = open();
    first.given(given('brisk-otter'), null);
    first.given({ key: 'other', value: 'calm-fox', name: 'api' }, null);
    first.close();
    const second = open(true);
    expect(second.take('k', 'web')).toBeNull();
    second.given(given('new'), null);
    second.close();
    const third = open();
    expect([third.take('k', 'web'), third.take('other', 'api')]).toEqual(['new', 'calm-fox']);
    third.close();
  });

  it('keeps all endpoints when several clients write at once', () => {
    const clients = Array.from({ length: 20 }, () => open());
    clients.forEach((client, at) => client.given({ key: `k${at}`, value: `name-${at}`, name: 'web' }, null));
    for (const client of clients) client.close();
    const reader = open();
    expect(clients.map((_, at) => reader.take(`k${at}`, 'web'))).toEqual(clients.map((_, at) => `name-${at}`));
    reader.close();
  });

  it.each(['', '{', '[]', '{"version":2,"endpoints":[]}', '{"version":1,"endpoints":[{"key":1},null]}'])(
    'is treated as empty when it contains %j',
    (text) => {
      writeFileSync(path(), text);
      const client = open();
      expect(client.take('k', 'web')).toBeNull();
      client.given(given('brisk-otter'), null);
      client.close();
      expect(open().take('k', 'web')).toBe('brisk-otter');
    },
  );

  it('is optional: a client works when the folder cannot be used', () => {
    writeFileSync(join(home.path, 'file'), '');
    const client = new AssignedEndpoints({ dir: join(home.path, 'file'), clock, logger, isForgetful: false });
    expect(client.take('k', 'web')).toBeNull();
    client.given(given('brisk-otter'), null);
    client.close();
  });
});
