// API keys: the endpoints, each field of a listed key, and the effect of a revocation on clients.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type ApiToken, apiTokens, createdKey } from '@tunnel/contract';
import { setPlan, setUnlimited } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import {
  OPERATOR,
  onSharedPlatform,
  PATIENCE_MS,
  type Person,
  PlatformHarness,
  TUNNEL_LIMIT,
} from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { connectWith, openTunnel, startService } from './tunnels.fixture.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
});

const listOf = async ({ token }: Person): Promise<ApiToken[]> => (await harness.get('/keys', token)).body as ApiToken[];
const listed = async (person: Person, id: string): Promise<ApiToken> => {
  const found = (await listOf(person)).find((key) => key.id === id);
  if (found === undefined) throw new Error(`${id} is not listed`);
  return found;
};
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('API keys', () => {
  it(row('API keys', 1), async () => {
    const { id } = await harness.newKey(ann);
    const answer = await harness.get('/keys', ann.token);
    expect(answer.status).toBe(200);
    expect(apiTokens.parse(answer.body).map((key) => key.id)).toContain(id);
    expect((await listOf(bob)).map((key) => key.id)).not.toContain(id);
    expect(refusalOf(await harness.get('/keys'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
  });

  it(row('API keys', 2), async () => {
    const answer = await harness.post('/keys', { label: 'ci' }, ann.token);
    expect(answer.status).toBe(201);
    const { token } = createdKey.strict().parse(answer.body);
    expect((await harness.get('/keys', ann.token)).text).not.toContain(token);
    const rows = await harness.db.selectFrom('api_keys').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(refusalOf(await harness.post('/keys', { label: '' }, ann.token))).toEqual([400, 'API_BAD_REQUEST']);
    expect(refusalOf(await harness.post('/keys', { label: 'ci' }))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
  });

  it(row('API keys', 3), async () => {
    const { id } = await harness.newKey(ann);
    const remove = (keyId: string, person?: Person) =>
      harness.ask('DELETE', `/keys/${keyId}`, person === undefined ? {} : { token: person.token });
    expect(refusalOf(await remove(id))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    expect(refusalOf(await remove(id, bob))).toEqual([404, 'KEY_UNKNOWN']);
    const answer = await remove(id, ann);
    expect([answer.status, answer.text]).toEqual([204, '']);
    for (const odd of [id, crypto.randomUUID(), 'nothing', '%00', '%F0%9F%98%80', 'a'.repeat(5000)]) {
      expect(refusalOf(await remove(odd, ann))).toEqual([404, 'KEY_UNKNOWN']);
    }
  });
});

describe('ApiToken', () => {
  let raw: string;
  let key: ApiToken;
  beforeAll(async () => {
    const made = await harness.newKey(bob, '  die Büchse 🔑 ');
    raw = made.token;
    key = await listed(bob, made.id);
  });

  it(row('ApiToken', 1), () => expect(key.id).toMatch(/^[0-9a-f-]{36}$/));
  it(row('ApiToken', 2), () => expect(key.label).toBe('die Büchse 🔑'));
  it(row('ApiToken', 3), () => expect(key.token_hash).toBe(sha256(raw)));
  it(row('ApiToken', 4), () => {
    expect(key.created_at).toBe(new Date(key.created_at).toISOString());
    expect(Math.abs(Date.now() - Date.parse(key.created_at))).toBeLessThan(600_000);
  });
  it(row('ApiToken', 5), async () => {
    expect(key.last_used_at).toBeNull();
    await connectWith(harness, raw);
    await eventually(
      async () => {
        const { last_used_at: used } = await listed(bob, key.id);
        expect(used).toBe(new Date(used ?? '').toISOString());
      },
      { timeoutMs: PATIENCE_MS },
    );
  });
  it(row('ApiToken', 6), () => expect(key.scope).toBeNull());
  it(row('ApiToken', 7), () => expect(key.tier).toBe('free'));
  it(row('ApiToken', 8), async () => {
    expect(key.tunnel_limit).toBe(TUNNEL_LIMIT);
    const cyd = await harness.person();
    const { id } = await harness.newKey(cyd);
    await setPlan({ db: harness.db, clock: systemClock }, OPERATOR, { email: cyd.email, plan: 'payg' });
    expect(await listed(cyd, id)).toMatchObject({ tier: 'payg', tunnel_limit: null });
  });
  it(row('ApiToken', 9), () => expect(key.status).toBe('active'));
  it(row('ApiToken', 10), async () => {
    expect(key.unlimited).toBe(false);
    await setUnlimited({ db: harness.db }, OPERATOR, { keyId: key.id, unlimited: true });
    expect((await listed(bob, key.id)).unlimited).toBe(true);
  });
  it(row('ApiToken', 11), async () => {
    const { client, key: used } = await openTunnel(harness, bob);
    await client.open({ protocol: 'tcp', localPort: 9 });
    await client.close();
    await eventually(async () => expect((await listed(bob, used.id)).tunnel_count).toBe(2), { timeoutMs: PATIENCE_MS });
    expect(key.tunnel_count).toBe(0);
  });
  it('has exactly the fields of the specification and active_tunnels', () => {
    const fields = 'id label token_hash created_at last_used_at scope tier tunnel_limit status unlimited tunnel_count';
    expect(Object.keys(key).sort()).toEqual([...fields.split(' '), 'active_tunnels'].sort());
  });
});

describe('Contract', () => {
  it(row('Contract', 18), async () => {
    const { token } = await harness.newKey(ann);
    expect(token).toMatch(/^tnl_[0-9A-Za-z]{38}$/);
    const random = token.slice(4, 36);
    const sum = token.slice(36);
    let rest = crc32(random);
    let digits = '';
    for (let place = 0; place < 6; place += 1) {
      digits = BASE62.charAt(rest % 62) + digits;
      rest = Math.floor(rest / 62);
    }
    expect(sum).toBe(digits);
  });

  it(row('Contract', 19), async () => {
    const { tunnel, statuses, key } = await openTunnel(harness, ann);
    expect((await harness.ask('DELETE', `/keys/${key.id}`, { token: ann.token })).status).toBe(204);
    const revokedAt = performance.now();
    expect((await listOf(ann)).map(({ id }) => id)).not.toContain(key.id);
    await eventually(
      () => expect(statuses.at(-1)).toMatchObject({ type: 'closed', fault: { code: expect.any(String) } }),
      {
        timeoutMs: PATIENCE_MS,
      },
    );
    // The tunnel closes within 2 s on an idle machine. Without the notice from the platform, the edge would check the key only after a
    // minute.
    expect(performance.now() - revokedAt).toBeLessThan(15_000);
    await expect(connectWith(harness, key.token)).rejects.toMatchObject({ status: 401 });
    expect(await harness.server.tunnel(tunnel.tunnelId)).toBeUndefined();
  });

  it(row('Contract', 20), async () => {
    for (const label of ['a', 'ü'.repeat(100), '🔑'.repeat(100), ` ${'a'.repeat(100)}\n`]) {
      expect((await harness.post('/keys', { label }, ann.token)).status).toBe(201);
    }
    for (const label of ['', '   ', 'a'.repeat(101), '🔑'.repeat(101)]) {
      const { status, error } = await harness.post('/keys', { label }, ann.token);
      expect([status, error]).toEqual([400, expect.stringMatching(/^label/)]);
    }
  });
});

it(row('Other lifecycles', 4), async () => {
  const key = await harness.newKey(ann);
  await (await connectWith(harness, key.token)).client.close();
  await harness.ask('DELETE', `/keys/${key.id}`, { token: ann.token });
  // The edge has cached the key and learns about the revocation a moment later. Without the notice it would check the key only after a
  // minute.
  await eventually(() => expect(connectWith(harness, key.token)).rejects.toMatchObject({ status: 401 }), {
    timeoutMs: PATIENCE_MS,
  });
});

it(row('Authentication', 6), async () => {
  const { token } = await harness.newKey(ann);
  const { client } = await connectWith(harness, token);
  await client.open({ protocol: 'http', localPort: await startService(harness) });
  for (const wrong of [ann.token, `tnl_${'0'.repeat(38)}`, `${token}x`, 'nothing']) {
    await expect(connectWith(harness, wrong)).rejects.toMatchObject({ status: 401 });
  }
});

it(row('Authentication', 7), async () => {
  const { tunnel, key } = await openTunnel(harness, ann);
  const other = await harness.newKey(bob);
  const { server } = harness;
  for (const token of [key.token, undefined]) {
    expect((await server.tunnels(token)).map((one) => one.tunnel_id)).toContain(tunnel.tunnelId);
  }
  expect((await server.tunnels(other.token)).map((one) => one.tunnel_id)).not.toContain(tunnel.tunnelId);
  expect((await server.api('/api/tunnels', { token: ann.token })).status).toBe(401);
});
