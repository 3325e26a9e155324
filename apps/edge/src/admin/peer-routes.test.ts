// GET /api/tunnels/:id/peers and the dismissal of a peer, for the tunnel’s owner and the operator. The peers join through a real control
// plane, as raw clients.
import { apiError, edgePeers } from '@tunnel/contract';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl } from '../control/control.fixture.ts';
import { openRelay, RawPeer } from '../control/raw-peers.fixture.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, type RestFixture, startRest } from './rest.fixture.ts';

let control: ControlFixture;
let rest: RestFixture;
let publisher: RawPeer;
let subscriber: RawPeer;
let tunnelId: string;
beforeEach(async () => {
  control = await startControl({ clock: new FakeClock() });
  rest = await startRest({ peers: control.peers });
  publisher = await RawPeer.enter(control.port, 'alice');
  subscriber = await RawPeer.enter(control.port, 'alice-2');
  tunnelId = (await publisher.publish()).tunnel_id;
  rest.tunnels.set(tunnelId, control.tunnels.get(tunnelId) as Tunnel);
});
afterEach(async () => {
  await rest.stop();
  await control.stop();
});

const ask = async (path = '', { token = ALICE_KEY, id = tunnelId, method = 'GET' } = {}) => {
  const response = await rest.request(`/api/tunnels/${id}/peers${path}`, { token, method });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
};

const list = async () => edgePeers.strict().parse((await ask()).body);

describe('GET /api/tunnels/:id/peers, status 200', () => {
  it('lists each peer with its path and traffic, in order of connecting', async () => {
    expect(await list()).toEqual({ peers: [], total: 0 });
    const first = await subscriber.connect();
    const second = await subscriber.connect();
    const { near, farReads } = await openRelay(subscriber, publisher, first);
    near.write(Buffer.from('hello'), 0, 5, false);
    while (farReads.bytes < 5) await new Promise(setImmediate);
    const report = { tunnel_id: tunnelId, peer_id: second, path: 'direct', reason: '', rtt_ms: 12.5, direct_bytes: 99 };
    publisher.client.send({ type: 'PeerReport', ...report });
    await publisher.client.settle();
    const { clientAddr } = control.peers.of(tunnelId)[0] ?? {};
    const common = { client_addr: clientAddr, service: 'tcp', connected_since: '2030-01-01T00:00:00.000Z' };
    expect(await list()).toEqual({
      peers: [
        {
          peer_id: first,
          ...common,
          path: 'relay',
          reason: 'punching',
          rtt_ms: null,
          relayed_bytes: 5,
          direct_bytes: 0,
        },
        {
          peer_id: second,
          ...common,
          path: 'direct',
          reason: '',
          rtt_ms: 12.5,
          relayed_bytes: 0,
          direct_bytes: 99,
        },
      ],
      total: 2,
    });
    expect((await ask('', { token: ADMIN_TOKEN })).status).toBe(200);
  });
});

describe('DELETE /api/tunnels/:id/peers/:peer_id, status 204', () => {
  it('dismisses the given peer and keeps the other peers', async () => {
    const first = await subscriber.connect();
    const second = await subscriber.connect();
    expect(await ask(`/${first}`, { method: 'DELETE' })).toEqual({ status: 204, body: null });
    expect((await subscriber.told('PeerError')).code).toBe('P2P_DISMISSED');
    expect((await list()).peers.map(({ peer_id }) => peer_id)).toEqual([second]);
    expect((await ask(`/${first}`, { method: 'DELETE' })).status).toBe(404);
  });
});

describe('GET and DELETE of peers, status 404', () => {
  it.each([
    ['another’s tunnel', BOB_KEY, undefined],
    ['a tunnel that is not p2p', ALICE_KEY, 'tun_alice'],
    ['no tunnel', ALICE_KEY, 'tun_none'],
  ])('for %s', async (_, token, id = tunnelId) => {
    const peerId = await subscriber.connect();
    for (const [path, method] of [
      ['', 'GET'],
      [`/${peerId}`, 'DELETE'],
    ] as const) {
      const { status, body } = await ask(path, { token, id, method });
      expect([status, apiError.parse(body).code]).toEqual([404, 'TUNNEL_UNKNOWN']);
    }
    expect((await list()).total).toBe(1);
  });

  it('for an unknown peer', async () => {
    const { status, body } = await ask('/peer_none', { method: 'DELETE' });
    expect([status, apiError.parse(body).code]).toEqual([404, 'P2P_PEER_UNKNOWN']);
  });
});

it('GET and DELETE of peers get a 401 without a key', async () => {
  for (const method of ['GET', 'DELETE']) {
    const path = `/api/tunnels/${tunnelId}/peers${method === 'GET' ? '' : '/peer_1'}`;
    expect((await rest.request(path, { method })).status).toBe(401);
  }
});
