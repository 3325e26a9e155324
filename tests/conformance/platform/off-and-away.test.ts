// A server with an unreachable database, and a server with MCP switched off and without load balancing settings.
import { loadServerConfig } from '@tunnel/config/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { PASSWORD, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { openTunnel } from './tunnels.fixture.ts';

const harness = new PlatformHarness();
afterAll(() => harness.close());

describe('a platform whose database is unreachable', () => {
  const lost = new PlatformHarness();
  // The URL points to a port without a listener.
  const databaseUrl = 'postgres://nobody:secret@127.0.0.1:9/nothing';
  beforeAll(() => lost.start({ command: 'platform', databaseUrl }));
  afterAll(() => lost.close());

  it(row('Health', 1), async () => {
    const answer = await lost.get('/health');
    expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
  });

  it(row('Health', 2, 'unreachable'), async () => {
    const answer = await lost.get('/health/db');
    expect(refusalOf(answer)).toEqual([503, 'DATABASE_AWAY']);
    expect(answer.text).not.toMatch(/secret|127\.0\.0\.1|ECONNREFUSED/);
  });

  it(row('Contract', 31), async () => {
    const asked = [
      lost.get('/keys'),
      lost.get('/keys', 'a.b.c'),
      lost.post('/auth/login', { email: 'a@example.com', password: PASSWORD }),
      lost.post('/auth/register', { email: 'a@example.com', password: PASSWORD }),
      lost.ask('POST', '/auth/refresh', { cookie: `refresh_token=${'a'.repeat(43)}` }),
      lost.get('/auth/verify-email/x'),
      lost.get('/.well-known/jwks.json'),
      lost.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, `tnl_${'0'.repeat(38)}`),
    ];
    for (const answer of await Promise.all(asked)) {
      expect(refusalOf(answer)).toEqual([503, 'DATABASE_AWAY']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });
});

describe('a platform without load balancing settings in its configuration', () => {
  beforeAll(() => harness.start({ loadBalancing: null, tables: '[platform.mcp]\nenabled = false' }));

  it('/mcp returns 404 if MCP is switched off', async () => {
    expect(refusalOf(await harness.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }))).toEqual([
      404,
      'API_NOT_FOUND',
    ]);
  });

  it(row('Health', 2), async () => {
    const answer = await harness.get('/health/db');
    expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
  });

  it(row('Versioning', 3), async () => {
    expect(loadServerConfig({ env: {} }).load_balancing.enabled).toBe(false);
    const ann = await harness.person();
    const member = { protocol: 'tcp', group: 'db', groupKey: 'k', localPort: 9 } as const;
    const one = await openTunnel(harness, ann, member);
    const other = await openTunnel(harness, ann, member);
    expect(one.tunnel.assignedPort).not.toBe(other.tunnel.assignedPort);
    expect((await harness.get('/load-balancing/groups', ann.token)).body).toEqual({ groups: [], warnings: [] });
  });

  it(row('Contract', 38), async () => {
    const { token } = await harness.person();
    await harness.db.schema.alterTable('api_keys').renameTo('lost_keys').execute();
    const answer = await harness.get('/keys', token);
    expect(refusalOf(answer)).toEqual([500, 'INTERNAL']);
    expect(answer.text).not.toMatch(/api_keys|relation|exist|select|\.ts/);
    await harness.db.schema.alterTable('lost_keys').renameTo('api_keys').execute();
    expect((await harness.get('/keys', token)).status).toBe(200);
  });
});
