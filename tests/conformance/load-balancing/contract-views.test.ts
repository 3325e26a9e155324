// Contract rows about the display and counting of groups, and about members with a TLS local service.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from '@tunnel/client';
import { deterministicBytes, eventually, startEchoServer, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { askHttp2, dialHttp2 } from '../../system/https-visitor.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { TLS_CERT } from '../../system/stack.fixture.ts';
import { sendAndReadAll } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge, REGION } from './group-edge.fixture.ts';
import { distinct, join, namesAt, OFTEN, startNamed, untilHealthy } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

describe.concurrent('Contract', () => {
  it(row('Contract', 5), async ({ harness }) => {
    const asked: (string | undefined)[] = [];
    const server = createServer(testCertificate(), (request, response) => {
      asked.push(request.url);
      response.end('over TLS');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    harness.use({ close: async () => void server.close() });
    const localPort = (server.address() as AddressInfo).port;
    const group = fresh();
    const spec = { protocol: 'https', group, localPort, healthCheck: OFTEN } as const;
    const { tunnel } = await join(harness, edge, { ...spec, localTlsVerify: false });
    await untilHealthy(edge, group, 1);
    expect(asked[0]).toBe('/healthz');
    expect(await namesAt(tunnel, 1)).toEqual(['over TLS']);
    expect((await edge.group(group)).protocol).toBe('http');
    expect((await edge.tunnel(tunnel.tunnelId)).protocol).toBe('http');
    // A probe with certificate validation fails for an untrusted certificate.
    const strict = fresh();
    await join(harness, edge, { ...spec, group: strict });
    await eventually(async () => expect((await edge.group(strict)).total_health_failures).toBe(1));
    expect((await edge.group(strict)).healthy_count).toBe(0);
  });

  it(row('Contract', 24, 'HTTP/2: one dispatch per group and connection'), async ({ harness }) => {
    const secure = await GroupEdge.start(harness, { tls: true });
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const group = fresh();
    const open = async (localPort: number) => {
      const client = await connect({
        server: secure.server,
        token: secure.token('alice'),
        tls: true,
        caFile: TLS_CERT,
      });
      harness.use({ close: () => client.close() });
      return client.open({ protocol: 'http', group, groupKey: 'key', localPort });
    };
    const tunnel = await open(one.port);
    await open(two.port);
    for (let connections = 1; connections <= 5; connections += 1) {
      const session = dialHttp2(harness, endpointOf(tunnel.publicUrl));
      const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => askHttp2(session, '/')));
      expect(distinct(answers.map(({ body }) => body.toString()))).toHaveLength(1);
      expect((await secure.group(group)).total_dispatches).toBe(connections);
    }
  });

  it(row('Contract', 27), async ({ harness }) => {
    const group = fresh();
    const echo = harness.use(await startEchoServer());
    const { tunnel } = await join(harness, edge, { protocol: 'tcp', group, localPort: echo.port });
    const bytes = deterministicBytes(10_000, 3);
    for (let visits = 0; visits < 3; visits += 1) await sendAndReadAll(tunnel.assignedPort ?? 0, bytes);
    await eventually(async () => {
      const { label, total_dispatches, members } = await edge.group(group);
      expect([label, total_dispatches]).toEqual([String(tunnel.assignedPort), 3]);
      // Counts connections, and the bytes of both directions without framing.
      expect(members).toMatchObject([{ request_count: 3, bytes_proxied: 3 * 2 * 10_000 }]);
    });
  });

  it(row('Contract', 28), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge, 'alice');
    const member = await raw.join(memberRequest(group));
    const paths = ['/api/groups', `/api/tunnels/${member.tunnel_id}/health-events`];
    for (const path of paths) {
      const answer = await fetch(`${edge.stack.run.api_url}${path}`);
      expect(answer.status).toBe(401);
      expect(await answer.json()).toMatchObject({ error: expect.any(String) as string });
    }
    expect((await edge.group(group, 'alice-2')).member_count).toBe(1);
    expect(await edge.healthEvents(member.tunnel_id, 'alice-2')).toEqual([]);
    const other = await RawControl.enter(harness, edge, 'alice-2');
    await other.join(memberRequest(group));
    expect((await edge.group(group, 'alice')).member_count).toBe(2);
    expect(await edge.findGroup(group, 'bob')).toBeUndefined();
  });

  it(row('Contract', 29), async ({ harness }) => {
    const subdomain = fresh();
    const group = 'Name of it';
    const raw = await RawControl.enter(harness, edge);
    const one = await raw.join(memberRequest(group, { subdomain }));
    const two = await raw.join(memberRequest('ignored', { subdomain }));
    const solo = await raw.join({ protocol: 'http' });
    await raw.healthy(one);
    const common = { group, label: subdomain, public_url: one.public_url, protocol: 'http', region_id: REGION };
    expect(await edge.tunnel(one.tunnel_id)).toMatchObject({ ...common, healthy: true });
    expect(await edge.tunnel(two.tunnel_id)).toMatchObject({ ...common, healthy: false });
    expect(await edge.tunnel(solo.tunnel_id)).toMatchObject({ group: null, healthy: true });
    const ids = (await edge.stack.tunnels(edge.token('alice'))).map(({ tunnel_id }) => tunnel_id);
    expect(ids).toEqual(expect.arrayContaining([one.tunnel_id, two.tunnel_id, solo.tunnel_id]));
  });

  it(row('Contract', 30), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const leaving = await join(harness, edge, { group, localPort: service.port });
    const endpoint = endpointOf(leaving.tunnel.publicUrl);
    for (let asked = 0; asked < 4; asked += 1) await askHttp(endpoint);
    const raw = await RawControl.enter(harness, edge, 'alice');
    const failing = await raw.join(memberRequest(group));
    await raw.unhealthy(failing);
    await join(harness, edge, { group, localPort: service.port }, { who: 'bob' });
    await join(harness, edge, { group, localPort: service.port });
    await leaving.client.close();
    await raw.leave(failing);
    const totals = { total_dispatches: 4, total_health_failures: 1 };
    // Alice's totals include her members that have left, but none of bob's.
    expect(await edge.group(group, 'alice')).toMatchObject({ member_count: 1, ...totals });
    expect(await edge.group(group, 'bob')).toMatchObject({ total_dispatches: 0, total_health_failures: 0 });
    expect(await edge.group(group)).toMatchObject({ member_count: 2, ...totals });
  });

  it(row('Contract', 33), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const hers = await join(harness, edge, { group, localPort: service.port });
    const his = await join(harness, edge, { group, localPort: service.port }, { who: 'bob' });
    const endpoint = endpointOf(hers.tunnel.publicUrl);
    for (let asked = 0; asked < 20; asked += 1) await askHttp(endpoint, { path: `/nr-${asked}` });
    const captured = async (id: string, who: 'alice' | 'bob') =>
      (await edge.json<{ requests: { path: string; tunnel_id: string }[] }>(`/api/tunnels/${id}/requests`, who))
        .requests;
    await eventually(async () => {
      const alices = await captured(hers.tunnel.tunnelId, 'alice');
      const bobs = await captured(his.tunnel.tunnelId, 'bob');
      expect(distinct(alices.map(({ tunnel_id }) => tunnel_id))).toEqual([hers.tunnel.tunnelId]);
      const paths = [...alices, ...bobs].map(({ path }) => path);
      expect(distinct(paths)).toHaveLength(20);
      expect(paths).toHaveLength(20);
    });
    expect((await edge.get(`/api/tunnels/${his.tunnel.tunnelId}/requests`, 'alice')).status).toBe(404);
  });
});
