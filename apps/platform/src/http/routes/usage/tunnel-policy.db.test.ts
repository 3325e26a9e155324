import { type TunnelPolicy, tunnelPolicy } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addUsageRoutes } from './usage-routes.ts';

let fixture: PlatformFixture;

beforeAll(async () => {
  fixture = await openPlatformFixture(addUsageRoutes);
  const entry = (tunnel_id: string, protocol: string, more: object = {}) => ({
    user_id: fixture.alice.userId,
    tunnel_id,
    protocol,
    label: 'label',
    region_id: 'local',
    registered_at: new Date(fixture.clock.now()),
    ...more,
  });
  const ended = { unregistered_at: new Date(fixture.clock.now()) };
  await fixture.database.db
    .insertInto('tunnel_log')
    .values([entry('tun_web', 'http'), entry('tun_db', 'tcp'), entry('tun_ended', 'http', ended)])
    .execute();
});
afterAll(() => fixture.close());

const ask = async (id: string, user = fixture.alice): Promise<{ status: number; body: unknown }> => {
  const answer = await fixture.ask(user, 'GET', `/usage/tunnels/${id}/policy`);
  return { status: answer.status, body: (await answer.json()) as unknown };
};

const POLICY: TunnelPolicy = {
  revision: 3,
  hash_short: '1f3a9c02',
  login: { provider: 'company' },
  operator_rules: 2,
  rules: [
    {
      index: 1,
      name: 'office',
      match: { path: ['/admin/**'] },
      action: 'auth',
      summary: 'login',
      matched: 7,
      answered: 4,
    },
  ],
};

describe('GET /usage/tunnels/{id}/policy', () => {
  it.each(['tun_web', 'tun_db'])("passes on the edge's response for any protocol: %s", async (id) => {
    fixture.edges.answer = POLICY;
    expect(await ask(id)).toEqual({ status: 200, body: tunnelPolicy.parse(POLICY) });
    expect(fixture.edges.asked.at(-1)).toEqual(['local', id, fixture.alice.userId]);
  });

  it('returns 404 for a foreign, unknown or ended tunnel, without a call to an edge', async () => {
    const before = fixture.edges.asked.length;
    expect(await ask('tun_web', fixture.bob)).toMatchObject({ status: 404, body: { code: 'TUNNEL_UNKNOWN' } });
    expect(await ask('tun_none')).toMatchObject({ status: 404, body: { code: 'TUNNEL_UNKNOWN' } });
    expect(await ask('tun_ended')).toMatchObject({ status: 404, body: { code: 'TUNNEL_UNKNOWN' } });
    expect(fixture.edges.asked).toHaveLength(before);
  });

  it('returns 404 without a policy, from an older edge, and for a tunnel unknown to its edge', async () => {
    fixture.edges.answer = new Fault('POLICY_ABSENT');
    expect(await ask('tun_web')).toMatchObject({ status: 404, body: { code: 'POLICY_ABSENT' } });
    fixture.edges.answer = new Fault('API_NOT_FOUND');
    expect(await ask('tun_web')).toMatchObject({ status: 404, body: { code: 'POLICY_ABSENT' } });
    fixture.edges.answer = new Fault('TUNNEL_UNKNOWN');
    expect(await ask('tun_web')).toMatchObject({ status: 404, body: { code: 'TUNNEL_UNKNOWN' } });
  });

  it('returns 502 if the region is unavailable', async () => {
    fixture.edges.answer = new Fault('EDGE_AWAY', { region: 'local' });
    expect(await ask('tun_web')).toMatchObject({ status: 502, body: { code: 'EDGE_AWAY' } });
  });
});
