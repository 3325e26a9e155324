// The numbered rules of registration and dispatch.
import type { Socket } from 'node:net';
import { eventually, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf, readUntil, sendRaw } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { ask, readText, visit } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { distinct, greetingAt, join, namesAt, startNamed, startNamedTcp, untilHealthy } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

/** Maximum chi-square value with two degrees of freedom. A fair choice exceeds it once in a million runs. */
const CHI_SQUARE_MAX = 27.63;

const chiSquare = (names: readonly string[], kinds: number): number => {
  const expected = names.length / kinds;
  const counts = distinct(names).map((name) => names.filter((one) => one === name).length);
  const missing = (kinds - counts.length) * expected;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, missing);
};

describe.concurrent('Behaviour rules', () => {
  it(row('Behaviour rules', 1), async ({ harness }) => {
    const group = fresh();
    const services = await Promise.all([1, 2, 3].map(() => startNamed(harness)));
    const members = [];
    for (const { port } of services) members.push(await join(harness, edge, { group, localPort: port }));
    const down = await (await RawControl.enter(harness, edge)).join(memberRequest(group));
    const [first] = members;
    const names = (await Promise.all([1, 2, 3, 4].map(() => namesAt(first?.tunnel ?? { publicUrl: '' }, 75)))).flat();
    expect(distinct(names)).toEqual(services.map(({ name }) => name).sort());
    expect(chiSquare(names, 3)).toBeLessThan(CHI_SQUARE_MAX);
    expect((await edge.group(group)).members.find(({ tunnel_id }) => tunnel_id === down.tunnel_id)).toMatchObject({
      request_count: 0,
    });
  });

  it(row('Behaviour rules', 1, 'tcp'), async ({ harness }) => {
    const group = fresh();
    let port = 0;
    for (const name of ['one', 'two', 'six']) {
      const { port: localPort } = await startNamedTcp(harness, name);
      const { tunnel } = await join(harness, edge, { protocol: 'tcp', group, localPort });
      port = tunnel.assignedPort ?? 0;
    }
    const names: string[] = [];
    for (let visits = 0; visits < 150; visits += 1) names.push(await greetingAt(port, 3));
    expect(distinct(names)).toEqual(['one', 'six', 'two']);
    expect(chiSquare(names, 3)).toBeLessThan(CHI_SQUARE_MAX);
  });

  it(row('Behaviour rules', 2), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const plain = fresh();
    const secure = fresh();
    const first = await raw.join(memberRequest(plain));
    await raw.join(memberRequest(secure, { protocol: 'https' }));
    expect((await raw.refusal(memberRequest(plain, { protocol: 'https' }))).message).toMatch(/protocol does not match/);
    expect((await raw.refusal(memberRequest(secure, { protocol: 'http' }))).message).toMatch(/protocol does not match/);
    expect((await raw.join(memberRequest('other name', { subdomain: plain }))).public_url).toBe(first.public_url);
    expect((await raw.join(memberRequest(secure, { protocol: 'https' }))).label).toBe(secure);
  });

  it(row('Behaviour rules', 3), async ({ harness }) => {
    const group = fresh();
    const service = await startNamedTcp(harness, 'tcp');
    const spec = { protocol: 'tcp', group, localPort: service.port } as const;
    const members = [await join(harness, edge, spec), await join(harness, edge, spec), await join(harness, edge, spec)];
    const ports = distinct(members.map(({ tunnel }) => tunnel.assignedPort));
    expect(ports).toHaveLength(1);
    // The first member leaves. The port belongs to the group, so it stays open.
    await members[0]?.client.close();
    expect(await greetingAt(ports[0] ?? 0, 3)).toBe('tcp');
    expect((await join(harness, edge, spec)).tunnel.assignedPort).toBe(ports[0]);
  });

  it(row('Behaviour rules', 4), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: service.port });
    for (const who of ['alice', 'bob'] as const) {
      const solo = join(harness, edge, { subdomain: group, localPort: service.port }, { who });
      await expect(solo).rejects.toThrow(`subdomain '${group}' is already in use`);
    }
    expect(await namesAt(tunnel, 2)).toEqual([service.name, service.name]);
    expect((await edge.group(group)).member_count).toBe(1);
  });

  it(row('Behaviour rules', 5), async ({ harness }) => {
    const subdomain = fresh('solo');
    const service = await startNamed(harness);
    const solo = await join(harness, edge, { subdomain, localPort: service.port });
    for (const who of ['alice', 'bob'] as const) {
      const grouped = join(harness, edge, { subdomain, group: 'any', localPort: service.port }, { who });
      await expect(grouped).rejects.toThrow('group key does not match');
    }
    expect((await edge.groups()).filter(({ label }) => label === subdomain)).toEqual([]);
    // After the solo tunnel has closed, a group can take the subdomain.
    await solo.client.close();
    const { tunnel } = await join(harness, edge, { subdomain, group: 'any', localPort: service.port });
    expect(tunnel.label).toBe(subdomain);
  });

  it(row('Behaviour rules', 6), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    for (const protocol of ['http', 'tcp'] as const) {
      const group = fresh();
      await raw.join(memberRequest(group, { protocol }));
      const { message } = await raw.refusal(memberRequest(group, { protocol, key: 'another' }));
      expect(message).toBe('group key does not match');
      expect((await edge.group(group)).member_count).toBe(1);
    }
  });

  it(row('Behaviour rules', 7), async ({ harness }) => {
    const heads: string[] = [];
    const sockets: Socket[] = [];
    const service = harness.use(
      await startTcpServer((socket) => {
        sockets.push(socket);
        socket.on('data', (bytes) => {
          heads.push(bytes.toString());
          // Sends only a status line, without headers and without an end.
          socket.write('HTTP/1.1 299 Fine\r\n');
        });
      }),
    );
    const http = fresh();
    const tcp = fresh();
    const healthCheck = { type: 'http', path: '/ready?deep=1', intervalSecs: 60, timeoutSecs: 5 } as const;
    await join(harness, edge, { group: http, localPort: service.port, healthCheck });
    await untilHealthy(edge, http, 1);
    expect(heads).toHaveLength(1);
    expect(heads[0]).toMatch(/^GET \/ready\?deep=1 HTTP\/1\.0\r\n(.+\r\n)*\r\n$/);
    await join(harness, edge, { group: tcp, localPort: service.port, healthCheck: { type: 'tcp', intervalSecs: 60 } });
    await untilHealthy(edge, tcp, 1);
    // The tcp probe opens a connection but sends no bytes.
    expect(sockets).toHaveLength(2);
    expect(heads).toHaveLength(1);
  });

  it.each([
    [199, false],
    [200, true],
    [299, true],
    [300, false],
  ])(row('Behaviour rules', 7, 'status %i: %s'), async (status, healthy) => {
    const harness = new Harness();
    try {
      const answer = `HTTP/1.0 ${status} Something\r\n\r\n`;
      const service = harness.use(
        await startTcpServer((socket) => void socket.on('data', () => socket.end(answer)).on('error', () => {})),
      );
      const group = fresh();
      const healthCheck = { type: 'http', path: '/', intervalSecs: 0.1, maxFailed: 1 } as const;
      await join(harness, edge, { group, localPort: service.port, healthCheck });
      await eventually(async () => {
        const { healthy_count, total_health_failures } = await edge.group(group);
        expect([healthy_count, total_health_failures]).toEqual(healthy ? [1, 0] : [0, 1]);
      });
    } finally {
      await harness.close();
    }
  });

  it(row('Behaviour rules', 8), async ({ harness }) => {
    const group = fresh();
    const leaving = await startNamedTcp(harness, 'old');
    const staying = await startNamedTcp(harness, 'new');
    const first = await join(harness, edge, { protocol: 'tcp', group, localPort: leaving.port });
    const port = first.tunnel.assignedPort ?? 0;
    const visitor = await visit(port);
    expect(await readText(visitor, 3)).toBe('old');
    await join(harness, edge, { protocol: 'tcp', group, localPort: staying.port });
    await first.tunnel.close();
    expect((await edge.group(group)).member_count).toBe(1);
    for (let visits = 0; visits < 5; visits += 1) expect(await greetingAt(port, 3)).toBe('new');
    // The open connection continues in both directions.
    expect(await ask(visitor, 'still here')).toBe('still here');
    visitor.destroy();
  });

  it(row('Behaviour rules', 8, 'http, and the last member'), async ({ harness }) => {
    const group = fresh();
    let finish: () => void = () => {};
    const service = await startNamed(harness, 'slow', (_, response) => {
      response.write('begun');
      finish = () => void response.end(', ended');
    });
    const { tunnel } = await join(harness, edge, { group, localPort: service.port });
    const socket = await sendRaw(endpointOf(tunnel.publicUrl), 'GET / HTTP/1.1\r\nhost: {host}\r\n\r\n');
    await readUntil(socket, /begun/);
    await tunnel.close();
    expect(await edge.findGroup(group)).toBeUndefined();
    expect((await askHttp(endpointOf(tunnel.publicUrl))).status).toBe(404);
    finish();
    expect(await readUntil(socket, /, ended/)).toContain(', ended');
    socket.destroy();
  });

  it(row('Behaviour rules', 9), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    for (const protocol of ['udp', 'p2p'] as const) {
      expect((await raw.refusal(memberRequest(fresh(), { protocol }))).code).toMatch(/^TUNNEL_PROTOCOL|^GROUP_/);
    }
    // Neither a cookie nor the visitor's address ties a visitor to a member.
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: one.port });
    const other = await join(harness, edge, { group, localPort: two.port });
    const answer = await askHttp(endpointOf(tunnel.publicUrl));
    expect(answer.headers).not.toHaveProperty('set-cookie');
    expect(distinct(await namesAt(tunnel, 40))).toEqual([one.name, two.name].sort());
    // A different group key is accepted only after all members have left.
    const renewed = { group, groupKey: 'renewed', localPort: one.port };
    await expect(join(harness, edge, renewed)).rejects.toThrow('group key does not match');
    await Promise.all([tunnel.close(), other.tunnel.close()]);
    await join(harness, edge, renewed);
  });
});
