// Tests of `tunnel udp` from end to end: the local service gets each datagram of a visitor whole and once, and vice versa. Further tests
// cover flows after the end of the client, the edge or the tunnel.
import { deterministicBytes, eventually, startUdpEcho, startUdpService } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { flowsOf, isUdpPortFree, UdpVisitor } from '../udp-visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

const visit = async (harness: Harness, port: number): Promise<UdpVisitor> => harness.use(await UdpVisitor.of(port));

describe.concurrent('a UDP tunnel', () => {
  it('is announced with its port, and listed with its flows in the REST API', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(stack, echo.port, { flags: ['--name', 'dns'] });
    const { tunnel_id: id, assigned_port: port, public_url } = await tunnel.ready();
    expect(public_url).toBe(`udp://localhost:${port}`);
    const visitor = await visit(harness, port);
    expect(String(await visitor.ask('one'))).toBe('one');
    expect(String(await visitor.ask('three'))).toBe('three');
    const { flows, total, path } = await flowsOf(stack, id);
    expect([total, ['udp', 'carrier'].includes(path)]).toEqual([1, true]);
    const counts = { datagrams_in: 2, datagrams_out: 2, bytes_in: 8, bytes_out: 8, dropped: 0 };
    expect(flows).toEqual([expect.objectContaining({ visitor: visitor.name, confirmed: true, ...counts })]);
    expect(await stack.tunnel(id)).toMatchObject({
      name: 'dns',
      protocol: 'udp',
      label: String(port),
      assigned_port: port,
      public_url,
      request_count: 1,
      bytes_proxied: 16,
    });
    expect(await stack.metric('tunnel_udp_flows')).toBeGreaterThanOrEqual(1);
  });

  it('carries whole datagrams of every size from 0 to 65,507 bytes', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(stack, echo.port);
    const { assigned_port: port } = await tunnel.ready();
    const visitor = await visit(harness, port);
    for (const size of [0, 1, 512, 1200, 1372, 1373, 1472, 9000, 65_507]) {
      const bytes = deterministicBytes(size, size);
      const before = visitor.heard.length;
      expect((await visitor.ask(bytes)).equals(bytes), `${size} bytes`).toBe(true);
      expect(visitor.heard.length).toBe(before + 1);
    }
    expect(echo.received.map(({ bytes }) => bytes.length)).toEqual(expect.arrayContaining([0, 1373, 65_507]));
  });

  it('uses a separate socket for each visitor, and no visitor gets datagrams of another', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(stack, echo.port);
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    const visitors = await Promise.all(Array.from({ length: 50 }, () => visit(harness, port)));
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(visitors.map((visitor) => visitor.ask(`${visitor.name} ${round}`)));
    }
    for (const { heard, name } of visitors) expect(heard.map(String)).toEqual([0, 1, 2].map((n) => `${name} ${n}`));
    expect(new Set(echo.received.map(({ from }) => from)).size).toBe(50);
    expect(await flowsOf(stack, id)).toMatchObject({ total: 50 });
  });

  it('can share its port number with a TCP tunnel', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const udp = await (await harness.udp(stack, echo.port)).ready();
    const flags = ['--remote-port', String(udp.assigned_port)];
    const tcp = await (await harness.tcp(stack, echo.port, { flags })).ready();
    expect(tcp.assigned_port).toBe(udp.assigned_port);
  });

  it('closed through the REST API ends its flows and frees its port', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(stack, echo.port);
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    await (await visit(harness, port)).ask('hello');
    expect((await stack.api(`/api/tunnels/${id}`, { method: 'DELETE' })).status).toBe(204);
    await eventually(async () => expect(await isUdpPortFree(port)).toBe(true));
    expect((await stack.api(`/api/tunnels/${id}/flows`)).status).toBe(404);
  });
});

describe.concurrent('a killed client of a UDP tunnel', () => {
  it('keeps its port reserved: arriving datagrams are dropped and counted, and open no new flow', async ({
    harness,
  }) => {
    const own = await harness.stack();
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(own, echo.port);
    const { assigned_port: port } = await tunnel.ready();
    const visitor = await visit(harness, port);
    await visitor.ask('hello');
    await tunnel.kill();
    await eventually(async () => expect(await own.tunnels()).toEqual([]));
    const before = await own.metric('tunnel_udp_dropped_total\\{reason="away"\\}');
    for (let n = 0; n < 100; n += 1) visitor.say('is anybody there?');
    const later = await visit(harness, port);
    later.say('hello');
    await eventually(async () =>
      expect(await own.metric('tunnel_udp_dropped_total\\{reason="away"\\}')).toBe(before + 101),
    );
    expect(await own.metric('tunnel_udp_flows')).toBe(1);
    expect(await isUdpPortFree(port)).toBe(false);
  });
});

describe.concurrent('an edge with UDP tunnels', () => {
  it('gets its UDP tunnels back on their ports after a kill, and visitors continue', async ({ harness }) => {
    const own = await harness.stack({ fixedPorts: true });
    const echo = harness.use(await startUdpEcho());
    const tunnel = await harness.udp(own, echo.port);
    const { assigned_port: port } = await tunnel.ready();
    const visitor = await visit(harness, port);
    await visitor.ask('before');
    await own.kill();
    await own.start();
    await tunnel.waitFor('reconnected');
    expect(String(await visitor.askUntilAnswered('after'))).toBe('after');
    expect((await own.tunnels()).map((row) => row.assigned_port)).toEqual([port]);
    expect(tunnel.events('ready')).toHaveLength(1);
  });

  it('accepts no new flows after SIGTERM, and serves existing flows for drain_secs', async ({ harness }) => {
    const own = await harness.stack({ server: 'drain_secs = 2' });
    const asked: string[] = [];
    const service = harness.use(
      await startUdpService((bytes) => {
        asked.push(String(bytes));
        return bytes;
      }),
    );
    const tunnel = await harness.udp(own, service.port);
    const { assigned_port: port } = await tunnel.ready();
    const living = await visit(harness, port);
    const late = await visit(harness, port);
    await living.ask('before');
    own.program.signal('SIGTERM');
    await tunnel.waitFor('reconnecting');
    late.say('too late');
    for (let n = 0; n < 3; n += 1) expect(String(await living.ask(`still ${n}`))).toBe(`still ${n}`);
    expect([late.heard, asked.includes('too late')]).toEqual([[], false]);
    expect(await own.program.waitForExit({ timeoutMs: 20_000 })).toEqual({ code: 0, signal: null });
    expect(await isUdpPortFree(port)).toBe(true);
  });
});
