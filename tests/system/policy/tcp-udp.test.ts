// Tests of rules in front of ports: connections and flows are judged by their address before they reach a service.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startEchoServer, startUdpEcho } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { flowsOf, UdpVisitor } from '../udp-visitor.fixture.ts';
import { ask, fateOf, visit } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

describe.concurrent('policy rules of TCP and UDP tunnels', () => {
  it('reset TCP visitors of denied addresses before the service, and let allowed addresses pass', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const closed = await harness.tcp(stack, echo.port, { flags: ['--allow-cidr', '192.0.2.0/24'] });
    const { assigned_port: port, tunnel_id: id } = await closed.ready();
    for (let n = 0; n < 5; n += 1) expect(await fateOf(port)).toBe('ECONNRESET');
    expect(await stack.tunnel(id)).toMatchObject({ request_count: 0, bytes_proxied: 0 });
    const open = await harness.tcp(stack, echo.port, {
      flags: ['--allow-cidr', '127.0.0.0/8', '--deny-cidr', '192.0.2.0/24'],
    });
    const socket = await visit((await open.ready()).assigned_port);
    expect(await ask(socket, 'hello')).toBe('hello');
    socket.destroy();
  });

  it('limit the rate of new TCP connections', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const file = join(await harness.folder(), 'policy.yml');
    writeFileSync(file, '- rate_limit: { requests: 2, per_secs: 3600 }\n');
    const tunnel = await harness.tcp(stack, echo.port, { flags: ['--policy', file] });
    const { assigned_port: port } = await tunnel.ready();
    const served = [await visit(port), await visit(port)];
    for (const socket of served) expect(await ask(socket, 'hello')).toBe('hello');
    expect(await fateOf(port)).toBe('ECONNRESET');
    for (const socket of served) socket.destroy();
  });

  it('drop and count UDP datagrams of denied addresses, which never reach the service', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(stack, echo.port, { flags: ['--deny-cidr', '127.0.0.0/8'] });
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    const visitor = harness.use(await UdpVisitor.of(port));
    for (let n = 0; n < 3; n += 1) visitor.say('hello');
    await eventually(async () => expect((await flowsOf(stack, id)).dropped).toMatchObject({ denied: 3 }));
    expect([echo.received, visitor.heard]).toEqual([[], []]);
    expect(await stack.tunnel(id)).toMatchObject({ request_count: 0, bytes_proxied: 0 });
  });

  it('limit the rate of new UDP flows, while existing flows continue', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const file = join(await harness.folder(), 'policy.yml');
    writeFileSync(file, '- rate_limit: { requests: 2, per_secs: 3600 }\n');
    const tunnel = await harness.udp(stack, echo.port, { flags: ['--policy', file] });
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    const first = harness.use(await UdpVisitor.of(port));
    const second = harness.use(await UdpVisitor.of(port));
    const third = harness.use(await UdpVisitor.of(port));
    for (const visitor of [first, second]) expect(String(await visitor.askUntilAnswered('hello'))).toBe('hello');
    third.say('hello');
    await eventually(async () => expect((await flowsOf(stack, id)).dropped).toMatchObject({ denied: 1 }));
    await eventually(() => {
      first.say('again');
      expect(first.heard.map(String)).toContain('again');
    });
    expect(third.heard).toEqual([]);
  });
});
