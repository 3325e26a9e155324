import { Fault } from '@tunnel/errors';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addTunnelCloseRoute } from './tunnel-routes.ts';

let fixture: PlatformFixture;

beforeAll(async () => {
  fixture = await openPlatformFixture(addTunnelCloseRoute);
  const registered_at = new Date(fixture.clock.now());
  const entry = (tunnel_id: string, more: object = {}) => ({
    user_id: fixture.alice.userId,
    tunnel_id,
    protocol: 'http',
    label: 'shop',
    region_id: 'local',
    registered_at,
    ...more,
  });
  await fixture.database.db
    .insertInto('tunnel_log')
    .values([entry('tun_live'), entry('tun_ended', { unregistered_at: registered_at })])
    .execute();
});
afterAll(() => fixture.close());

const close = async (id: string, user = fixture.alice): Promise<{ status: number; body: unknown }> => {
  const answer = await fixture.ask(user, 'DELETE', `/tunnels/${id}`);
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
};

const audited = () =>
  fixture.database.db
    .selectFrom('audit_log')
    .select(['actor', 'details'])
    .where('action', '=', 'tunnel.closed')
    .execute();

it('DELETE /tunnels/{id} closes the tunnel at its edge and writes an audit entry', async () => {
  fixture.edges.answer = null;
  const { userId } = fixture.alice;
  expect(await close('tun_live')).toEqual({ status: 204, body: null });
  expect(fixture.edges.asked).toEqual([['local', 'tun_live', userId]]);
  expect(await audited()).toEqual([{ actor: `user:${userId}`, details: { tunnel_id: 'tun_live' } }]);
});

it('DELETE /tunnels/{id} returns 404 for an unknown, ended or foreign tunnel, without a call to an edge', async () => {
  const before = fixture.edges.asked.length;
  const unknown = { status: 404, body: { code: 'TUNNEL_UNKNOWN' } };
  expect(await close('tun_none')).toMatchObject(unknown);
  expect(await close('tun_ended')).toMatchObject(unknown);
  expect(await close('tun_live', fixture.bob)).toMatchObject(unknown);
  expect(fixture.edges.asked).toHaveLength(before);
});

it('DELETE /tunnels/{id} returns 404 if the tunnel ended before the edge was called', async () => {
  fixture.edges.answer = new Fault('TUNNEL_UNKNOWN');
  expect(await close('tun_live')).toMatchObject({ status: 404, body: { code: 'TUNNEL_UNKNOWN' } });
});

it('DELETE /tunnels/{id} returns 502 while the edge is unavailable, without an audit entry', async () => {
  const before = (await audited()).length;
  fixture.edges.answer = new Fault('EDGE_AWAY', { region: 'local' });
  expect(await close('tun_live')).toMatchObject({ status: 502, body: { code: 'EDGE_AWAY' } });
  expect(await audited()).toHaveLength(before);
});

it('DELETE /tunnels/{id} returns 401 without sign-in', async () => {
  expect((await fixture.ask(null, 'DELETE', '/tunnels/tun_live')).status).toBe(401);
});
