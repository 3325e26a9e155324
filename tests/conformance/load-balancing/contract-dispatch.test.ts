// Contract rows about dispatch: which member serves a visitor, and when a different member is tried.
import { Agent } from 'node:http';
import { deterministicBytes, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf, readUntil, sendRaw, wholeBody } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { sendAndReadAll } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { distinct, endAfter, join, OFTEN, startNamed, untilHealthy } from './members.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

/** A port without a listener. A port assigned by the system could be reused by a server of a different test at any time. */
const DEAD_PORT = 1;

/** Number of visits after which chance would practically never have spared either of two members. */
const OFTEN_ENOUGH = 24;

describe.concurrent('Contract', () => {
  it(row('Contract', 21), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness, 'echo', async (request, response) => {
      const body = await wholeBody(request);
      response.end(Buffer.concat([Buffer.from(`${request.method} `), body]));
    });
    const { tunnel } = await join(harness, edge, { group, localPort: service.port });
    for (let dead = 0; dead < 2; dead += 1) {
      await join(harness, edge, { group, localPort: DEAD_PORT }, { who: 'bob' });
    }
    const endpoint = endpointOf(tunnel.publicUrl);
    const body = deterministicBytes(200_000, 5);
    for (let asked = 0; asked < OFTEN_ENOUGH; asked += 1) {
      const method = ['POST', 'PUT', 'DELETE'][asked % 3] ?? '';
      const answer = await askHttp(endpoint, { method, body, headers: { 'content-length': body.length } });
      expect(answer.status).toBe(200);
      expect(answer.body.equals(Buffer.concat([Buffer.from(`${method} `), body]))).toBe(true);
    }
    expect(service.served).toBe(OFTEN_ENOUGH);
    // Each visitor counts once, for the member that served it.
    const { members, total_dispatches } = await edge.group(group);
    expect(members.map(({ request_count }) => request_count)).toEqual([OFTEN_ENOUGH, 0, 0]);
    expect(total_dispatches).toBe(OFTEN_ENOUGH);
    expect((await edge.group(group, 'alice')).total_dispatches).toBe(OFTEN_ENOUGH);
    expect((await edge.group(group, 'bob')).total_dispatches).toBe(0);
  });

  it(row('Contract', 21, 'nobody can be reached'), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const member = await join(harness, edge, { group: web, localPort: DEAD_PORT });
    await join(harness, edge, { group: web, localPort: DEAD_PORT });
    const { tunnel } = await join(harness, edge, { protocol: 'tcp', group: db, localPort: DEAD_PORT });
    await join(harness, edge, { protocol: 'tcp', group: db, localPort: DEAD_PORT });
    const answer = await askHttp(endpointOf(member.tunnel.publicUrl), { method: 'POST', body: 'pay' });
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_UNREACHABLE']);
    expect(await endAfter(tunnel.assignedPort ?? 0, 'SSH-2.0-x\r\n')).toBe('ECONNRESET');
    // The member gets a single error status.
    const noticed = member.statuses.filter(({ type }) => type === 'local-error');
    expect(noticed).toHaveLength(1);
  });

  it(row('Contract', 22), async ({ harness }) => {
    const group = fresh();
    const heard: string[] = [];
    const good = await startNamed(harness, 'good', (request, response) => {
      heard.push(String(request.headers['x-nr']));
      response.end('good');
    });
    // A local service that reads the request and then closes the connection.
    const dying = await startNamed(harness, 'dying', (request) => {
      heard.push(String(request.headers['x-nr']));
      request.socket.destroy();
    });
    const { tunnel } = await join(harness, edge, { group, localPort: good.port });
    await join(harness, edge, { group, localPort: dying.port });
    const endpoint = endpointOf(tunnel.publicUrl);
    for (let asked = 0; asked < OFTEN_ENOUGH; asked += 1) {
      const method = ['GET', 'HEAD', 'OPTIONS'][asked % 3] ?? '';
      expect((await askHttp(endpoint, { method, headers: { 'x-nr': `${method} ${asked}` } })).status).toBe(200);
    }
    expect(dying.served).toBeGreaterThan(0);
    const posts: number[] = [];
    for (let asked = 0; asked < OFTEN_ENOUGH; asked += 1) {
      const headers = { 'x-nr': `POST ${asked}` };
      posts.push((await askHttp(endpoint, { method: 'POST', headers, body: 'pay' })).status);
    }
    expect(distinct(posts)).toEqual([200, 502]);
    const received = heard.filter((nr) => nr.startsWith('POST'));
    expect(new Set(received).size).toBe(received.length);
    expect(received).toHaveLength(OFTEN_ENOUGH);
  });

  it(row('Contract', 23), async ({ harness }) => {
    const group = fresh();
    const echo = harness.use(await startTcpServer((socket) => void socket.pipe(socket)));
    const spec = { protocol: 'tcp', group } as const;
    const { tunnel } = await join(harness, edge, { ...spec, localPort: echo.port });
    for (let dead = 0; dead < 3; dead += 1) await join(harness, edge, { ...spec, localPort: DEAD_PORT });
    const bytes = deterministicBytes(60_000, 7);
    for (let visits = 0; visits < OFTEN_ENOUGH; visits += 1) {
      // Sends all bytes and the FIN before any member can have answered.
      const back = await sendAndReadAll(tunnel.assignedPort ?? 0, bytes);
      expect(back.equals(bytes)).toBe(true);
    }
    const { members, total_dispatches } = await edge.group(group);
    expect(members.map(({ request_count }) => request_count)).toEqual([OFTEN_ENOUGH, 0, 0, 0]);
    expect(total_dispatches).toBe(OFTEN_ENOUGH);
  });

  it(row('Contract', 24), async ({ harness }) => {
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: one.port, healthCheck: OFTEN });
    await join(harness, edge, { group, localPort: two.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 2);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const endpoint = endpointOf(tunnel.publicUrl);
    const names: string[] = [];
    for (let asked = 0; asked < 10; asked += 1) names.push((await askHttp(endpoint, { agent })).text);
    expect(distinct(names)).toHaveLength(1);
    expect((await edge.group(group)).total_dispatches).toBe(1);
    // The member becomes unhealthy, so the other member serves the same connection.
    const [first, second] = names[0] === one.name ? [one, two] : [two, one];
    first.up = false;
    await untilHealthy(edge, group, 1);
    expect((await askHttp(endpoint, { agent })).text).toBe(second.name);
    expect((await edge.group(group)).total_dispatches).toBe(2);
    // The connection stays with the second member after the first has recovered.
    first.up = true;
    await untilHealthy(edge, group, 2);
    for (let asked = 0; asked < 10; asked += 1) expect((await askHttp(endpoint, { agent })).text).toBe(second.name);
    agent.destroy();
  });

  it(row('Contract', 24, 'another host on the same connection'), async ({ harness }) => {
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const here = await join(harness, edge, { group: fresh(), localPort: one.port });
    const there = await join(harness, edge, { group: fresh(), localPort: two.port });
    const endpoint = endpointOf(here.tunnel.publicUrl);
    const socket = await sendRaw(endpoint, 'GET / HTTP/1.1\r\nhost: {host}\r\n\r\n');
    expect(await readUntil(socket, new RegExp(`${one.name}$`))).toMatch(/^HTTP\/1\.1 200 /);
    socket.write(`GET / HTTP/1.1\r\nhost: ${endpointOf(there.tunnel.publicUrl).host}\r\n\r\n`);
    expect(await readUntil(socket, new RegExp(`${two.name}$`))).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    for (const { tunnel } of [here, there]) {
      expect((await edge.group(tunnel.group ?? '')).total_dispatches).toBe(1);
    }
  });
});
