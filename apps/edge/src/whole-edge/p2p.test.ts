// A whole edge with p2p tunnels: REST and metrics, the end of a permission, and a restart that both clients survive.

import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, sha256Hex, systemClock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openRelay, P2P_TUNNEL, RawPeer } from '../control/raw-peers.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
let folder: TemporaryDirectory;
let edges: Edge[];
beforeEach(async () => {
  folder = await temporaryDirectory();
  edges = [];
});
afterEach(async () => {
  for (const edge of edges) await edge.stop({ drainMs: 0 });
  await folder.close();
});

const keys = ['alice', 'bob'].map((account) => ({ account, sha256: sha256Hex(account) }));

const startEdge = async (): Promise<Edge> => {
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'edge.test' };
  const config = loadServerConfig({ env: {}, overrides: { server, auth: { keys } } });
  const edge = createEdge(config, {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
    dataDir: folder.path,
  });
  edges.push(edge);
  await edge.start();
  return edge;
};

const enter = (edge: Edge, resume?: RawPeer['resume'], key = 'admin') =>
  RawPeer.enter(edge.addresses.control.port, key, resume);

const api = async (edge: Edge, path: string, method = 'GET'): Promise<unknown> => {
  const url = `http://127.0.0.1:${edge.addresses.api.port}${path}`;
  const response = await fetch(url, { method, headers: { authorization: 'Bearer admin' } });
  return response.status === 204 ? 204 : response.json();
};

it('REST and metrics show p2p tunnels, peers and relayed bytes; DELETE ends joins and relays at once', async () => {
  const edge = await startEdge();
  const publisher = await enter(edge);
  const subscriber = await enter(edge);
  const { tunnel_id } = await publisher.publish();
  const peerId = await subscriber.connect();
  const { near, nearReads, farReads } = await openRelay(subscriber, publisher, peerId);
  near.write(Buffer.from('hello'), 0, 5, false);
  await eventually(() => expect(farReads.bytes).toBe(5));
  expect(await api(edge, `/api/tunnels/${tunnel_id}`)).toMatchObject({
    protocol: 'p2p',
    label: 'office-db',
    public_url: 'p2p://office-db',
    assigned_port: null,
    request_count: 1,
    bytes_proxied: 5,
  });
  expect(await api(edge, `/api/tunnels/${tunnel_id}/peers`)).toMatchObject({ peers: [{ relayed_bytes: 5 }], total: 1 });
  const metrics = await (await fetch(`http://127.0.0.1:${edge.addresses.metrics.port}/metrics`)).text();
  for (const line of [
    'tunnel_active_tunnels_p2p 1',
    'tunnel_p2p_peers{path="relay"} 1',
    'tunnel_p2p_relayed_bytes_total 5',
  ]) {
    expect(metrics).toContain(line);
  }
  expect(edge.counters['connections']).toBe(1);
  expect(await api(edge, `/api/tunnels/${tunnel_id}`, 'DELETE')).toBe(204);
  expect(await subscriber.told('PeerError')).toMatchObject({ peer_id: peerId, code: 'P2P_NOT_FOUND' });
  expect(await publisher.told('PeerGone')).toMatchObject({ peer_id: peerId, reason: 'revoked' });
  expect((await publisher.told('TunnelError')).code).toBe('TUNNEL_CLOSED_BY_OPERATOR');
  await eventually(() => expect([nearReads.reset, farReads.reset]).not.toContain(null));
  expect(edge.counters['connections']).toBe(0);
});

it('an edge that stops says nothing about joins; after a restart the publisher and the subscriber are back', async () => {
  const first = await startEdge();
  const publisher = await enter(first);
  const subscriber = await enter(first);
  await publisher.publish();
  const peerId = await subscriber.connect();
  const { nearReads } = await openRelay(subscriber, publisher, peerId);
  await first.stop({ drainMs: 50 });
  await eventually(() => expect(nearReads.reset).not.toBeNull());
  const heard = [...publisher.client.heard, ...subscriber.client.heard].map(({ type }) => type);
  expect(heard.filter((type) => type === 'PeerGone' || type === 'PeerError')).toEqual([]);
  const second = await startEdge();
  const again = await enter(second, subscriber.resume);
  expect(await again.connect({ peer_id: peerId })).toMatch(/^P2P_NOT_FOUND/);
  const back = await enter(second, publisher.resume);
  const { tunnel_id } = await back.publish();
  const anew = await again.connect({ peer_id: peerId });
  expect(await api(second, `/api/tunnels/${tunnel_id}/peers`)).toMatchObject({ peers: [{ peer_id: anew }], total: 1 });
});

it('a name open to everyone stays with its account after the publisher leaves and the edge restarts', async () => {
  const anyone = { p2p_allow: 'anyone' };
  const first = await startEdge();
  const publisher = await enter(first, undefined, 'alice');
  const { tunnel_id } = await publisher.publish(anyone);
  const bob = await enter(first, undefined, 'bob');
  expect(await bob.connect()).toMatch(/^peer_/);
  publisher.client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
  await bob.told('PeerError');
  const inUse = { code: 'TUNNEL_P2P_NAME_IN_USE', retryable: true };
  expect(await bob.client.refused({ ...P2P_TUNNEL, ...anyone })).toMatchObject(inUse);
  // A name open only to its account is separate from the name open to everyone.
  expect((await bob.publish()).public_url).toBe('p2p://office-db');
  await first.stop({ drainMs: 0 });
  const second = await startEdge();
  const stranger = await enter(second, undefined, 'bob');
  expect(await stranger.client.refused({ ...P2P_TUNNEL, ...anyone })).toMatchObject(inUse);
  const operator = await enter(second);
  expect(await operator.client.refused({ ...P2P_TUNNEL, ...anyone })).toMatchObject(inUse);
  expect((await (await enter(second, undefined, 'alice')).publish(anyone)).label).toBe('office-db');
});
