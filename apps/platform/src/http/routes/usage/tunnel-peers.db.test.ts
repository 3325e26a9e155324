import { edgeFlows, edgePeers } from '@tunnel/contract';
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
    .values([
      entry('tun_udp', 'udp'),
      entry('tun_p2p', 'p2p'),
      entry('tun_tcp', 'tcp'),
      entry('tun_udp_ended', 'udp', ended),
      entry('tun_p2p_ended', 'p2p', ended),
    ])
    .execute();
});
afterAll(() => fixture.close());

const ask = async (method: string, path: string, user = fixture.alice): Promise<{ status: number; body: unknown }> => {
  const answer = await fixture.ask(user, method, `/usage/tunnels/${path}`);
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
};

const PEERS = {
  peers: [
    {
      peer_id: 'peer_1',
      client_addr: '198.51.100.7:4711',
      service: 'tcp',
      path: 'relay',
      reason: 'random-ports',
      rtt_ms: null,
      connected_since: '2030-01-01T00:00:00.000Z',
      relayed_bytes: 7,
      direct_bytes: 0,
    },
  ],
  total: 1,
};

describe('GET /usage/tunnels/{id}/flows', () => {
  it("passes on the edge's response", async () => {
    const dropped = Object.fromEntries(edgeFlows.shape.dropped.keyType.options.map((reason) => [reason, 1]));
    fixture.edges.answer = { flows: [], total: 0, dropped, path: 'udp', reason: '' };
    expect(await ask('GET', 'tun_udp/flows')).toEqual({ status: 200, body: fixture.edges.answer });
    expect(fixture.edges.asked.at(-1)).toEqual(['local', 'tun_udp', fixture.alice.userId]);
  });

  it('returns no flows, in the same shape, for an ended tunnel or a tunnel unknown to its edge', async () => {
    fixture.edges.answer = new Fault('TUNNEL_UNKNOWN');
    for (const id of ['tun_udp', 'tun_udp_ended']) {
      const { status, body } = await ask('GET', `${id}/flows`);
      expect([status, edgeFlows.parse(body).flows, edgeFlows.parse(body).total]).toEqual([200, [], 0]);
    }
  });
});

describe('GET /usage/tunnels/{id}/peers', () => {
  it("passes on the edge's response", async () => {
    fixture.edges.answer = PEERS;
    expect(await ask('GET', 'tun_p2p/peers')).toEqual({ status: 200, body: edgePeers.parse(PEERS) });
    expect(fixture.edges.asked.at(-1)).toEqual(['local', 'tun_p2p', fixture.alice.userId]);
  });

  it('returns no peers for an ended tunnel or a tunnel unknown to its edge', async () => {
    fixture.edges.answer = new Fault('TUNNEL_UNKNOWN');
    for (const id of ['tun_p2p', 'tun_p2p_ended']) {
      expect(await ask('GET', `${id}/peers`)).toEqual({ status: 200, body: { peers: [], total: 0 } });
    }
  });
});

describe('DELETE /usage/tunnels/{id}/peers/{peer_id}', () => {
  it('calls the edge once to dismiss the peer', async () => {
    fixture.edges.answer = null;
    const before = fixture.edges.asked.length;
    expect(await ask('DELETE', 'tun_p2p/peers/peer_1')).toEqual({ status: 204, body: null });
    expect(fixture.edges.asked.slice(before)).toEqual([['local', 'tun_p2p', 'peer_1', fixture.alice.userId]]);
  });

  it('returns 404 for an unknown peer, and for an ended tunnel without a call to the edge', async () => {
    const before = fixture.edges.asked.length;
    expect(await ask('DELETE', 'tun_p2p_ended/peers/peer_1')).toMatchObject({
      status: 404,
      body: { code: 'P2P_PEER_UNKNOWN' },
    });
    expect(fixture.edges.asked).toHaveLength(before);
    fixture.edges.answer = new Fault('P2P_PEER_UNKNOWN');
    expect(await ask('DELETE', 'tun_p2p/peers/peer_2')).toMatchObject({ status: 404 });
  });
});

describe('the flows and peers endpoints', () => {
  const QUESTIONS = [
    ['GET', 'flows', 'tun_udp', 'TUNNEL_NOT_UDP'],
    ['GET', 'peers', 'tun_p2p', 'TUNNEL_NOT_P2P'],
    ['DELETE', 'peers/peer_1', 'tun_p2p', 'TUNNEL_NOT_P2P'],
  ] as const;

  it.each(QUESTIONS)(
    '%s %s return 400 for another protocol, 404 to another account, and 502 if the region is unavailable',
    async (...row) => {
      const [method, rest, tunnelId, code] = row;
      const other = await ask(method, `tun_tcp/${rest}`);
      expect(other).toMatchObject({ status: 400, body: { code } });
      expect(JSON.stringify(other.body)).toContain('tcp');
      expect((await ask(method, `${tunnelId}/${rest}`, fixture.bob)).status).toBe(404);
      fixture.edges.answer = new Fault('EDGE_AWAY', { region: 'local' });
      expect(await ask(method, `${tunnelId}/${rest}`)).toMatchObject({ status: 502, body: { code: 'EDGE_AWAY' } });
    },
  );
});
