// Contract rows about udp and p2p tunnels on the platform: flows and peers as the edge reports them, errors, and counters.
import { once } from 'node:events';
import { edgeFlows, edgePeers } from '@tunnel/contract';
import { eventually, startEchoServer, startUdpEcho } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { UdpVisitor } from '../../system/udp-visitor.fixture.ts';
import { refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { connectWith, entryWhen, lostTunnel, openTunnel } from './tunnels.fixture.ts';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
});

describe('Contract', () => {
  it(row('Contract', 42), async () => {
    const echo = harness.use(await startUdpEcho());
    const { client, tunnel, key } = await openTunnel(harness, ann, { protocol: 'udp', localPort: echo.port });
    await entryWhen(harness, ann, tunnel.tunnelId);
    const visitor = harness.use(await UdpVisitor.of(tunnel.assignedPort ?? 0));
    expect(String(await visitor.askUntilAnswered('12345678'))).toBe('12345678');
    const path = `/usage/tunnels/${tunnel.tunnelId}/flows`;
    const flows = edgeFlows.parse((await harness.get(path, ann.token)).body);
    expect(flows).toMatchObject({ total: 1, flows: [{ visitor: visitor.name }] });
    const atEdge = await harness.server.api(`/api/tunnels/${tunnel.tunnelId}/flows`, { token: key.token });
    expect(edgeFlows.parse(await atEdge.json())).toMatchObject({ total: 1, dropped: flows.dropped });

    expect(refusalOf(await harness.get(path, bob.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
    const peers = await harness.get(`/usage/tunnels/${tunnel.tunnelId}/peers`, ann.token);
    expect([...refusalOf(peers), peers.error]).toEqual([400, 'TUNNEL_NOT_P2P', expect.stringContaining('udp')]);
    const lost = await harness.get(`${await lostTunnel(harness, ann, { protocol: 'udp' })}/flows`, ann.token);
    expect(refusalOf(lost)).toEqual([502, 'EDGE_AWAY']);

    await client.close();
    await entryWhen(harness, ann, tunnel.tunnelId, ({ unregistered_at }) => unregistered_at !== null);
    const after = edgeFlows.parse((await harness.get(path, ann.token)).body);
    expect([after.flows, after.total]).toEqual([[], 0]);
  });

  it(row('Contract', 42, 'flows and payload are counted as of the other kinds'), async () => {
    const echo = harness.use(await startUdpEcho());
    const { tunnel } = await openTunnel(harness, bob, { protocol: 'udp', localPort: echo.port });
    const visitor = harness.use(await UdpVisitor.of(tunnel.assignedPort ?? 0));
    expect((await visitor.askUntilAnswered(Buffer.alloc(1000))).length).toBe(1000);
    const entry = await entryWhen(harness, bob, tunnel.tunnelId, ({ bytes_proxied }) => bytes_proxied >= 2000);
    expect(entry).toMatchObject({ protocol: 'udp', label: String(tunnel.assignedPort), request_count: 1 });
    await eventually(
      async () => {
        const { body } = await harness.get('/usage', bob.token);
        expect(body).toMatchObject({ active_tunnels: 1, total_requests_30d: 1, total_bytes_30d: entry.bytes_proxied });
      },
      { timeoutMs: PATIENCE_MS },
    );
  });

  it(row('Contract', 43, 'a publisher and its subscriber'), async () => {
    const secret = 'a secret of at least sixteen bytes';
    const echo = harness.use(await startEchoServer());
    const spec = { protocol: 'p2p', p2pName: `db-${process.pid}`, secret, localPort: echo.port } as const;
    const { client, tunnel } = await openTunnel(harness, ann, spec);
    const entry = await entryWhen(harness, ann, tunnel.tunnelId, ({ label }) => label === spec.p2pName);
    expect(entry.protocol).toBe('p2p');
    const { client: other } = await connectWith(harness, (await harness.newKey(ann)).token);
    const peer = await other.connectPeer({ p2pName: spec.p2pName, secret, direct: false });
    const stream = await peer.dial();
    stream.write('hello');
    expect(String((await once(stream, 'data'))[0])).toBe('hello');

    const path = `/usage/tunnels/${tunnel.tunnelId}/peers`;
    const joined = await eventually(
      async () => {
        const list = edgePeers.parse((await harness.get(path, ann.token)).body);
        expect(list).toMatchObject({ total: 1, peers: [{ service: 'tcp', path: 'relay', reason: 'off' }] });
        expect(list.peers[0]?.relayed_bytes).toBeGreaterThan(10);
        return list.peers[0];
      },
      { timeoutMs: PATIENCE_MS },
    );
    // Publisher and connecting client share a tunnel; the connecting client has no log entry.
    const counted = await entryWhen(harness, ann, tunnel.tunnelId, ({ request_count }) => request_count > 0);
    expect([counted.request_count, counted.bytes_proxied > 10]).toEqual([1, true]);
    expect((await harness.get('/usage/tunnels?protocol=p2p&state=active', ann.token)).body).toHaveLength(1);

    expect(refusalOf(await harness.get(path, bob.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
    const ended = once(stream, 'error') as Promise<[Error]>;
    expect((await harness.ask('DELETE', `${path}/${joined?.peer_id}`, { token: ann.token })).status).toBe(204);
    expect((await ended)[0].message).toContain('disconnected from');
    expect((await harness.get(path, ann.token)).body).toEqual({ peers: [], total: 0 });
    const again = await harness.ask('DELETE', `${path}/${joined?.peer_id}`, { token: ann.token });
    expect(refusalOf(again)).toEqual([404, 'P2P_PEER_UNKNOWN']);
    await Promise.all([client.close(), other.close()]);
  });

  it(row('Contract', 43), async () => {
    const path = await lostTunnel(harness, ann, { protocol: 'p2p' });
    expect(refusalOf(await harness.get(`${path}/peers`, ann.token))).toEqual([502, 'EDGE_AWAY']);
    const dismissal = (at: string, token: string) => harness.ask('DELETE', `${at}/peers/peer_x`, { token });
    expect(refusalOf(await dismissal(path, ann.token))).toEqual([502, 'EDGE_AWAY']);
    expect(refusalOf(await dismissal(path, bob.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
    expect(refusalOf(await harness.get(`${path}/flows`, ann.token))).toEqual([400, 'TUNNEL_NOT_UDP']);
    const tcp = await lostTunnel(harness, ann, { protocol: 'tcp' });
    expect(refusalOf(await harness.get(`${tcp}/peers`, ann.token))).toEqual([400, 'TUNNEL_NOT_P2P']);
    expect(refusalOf(await dismissal(tcp, ann.token))).toEqual([400, 'TUNNEL_NOT_P2P']);
    const ended = await lostTunnel(harness, ann, { protocol: 'p2p', endedAt: new Date() });
    expect((await harness.get(`${ended}/peers`, ann.token)).body).toEqual({ peers: [], total: 0 });
    expect(refusalOf(await dismissal(ended, ann.token))).toEqual([404, 'P2P_PEER_UNKNOWN']);
  });
});
