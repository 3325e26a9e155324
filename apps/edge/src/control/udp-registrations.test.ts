// Registrations of udp tunnels, from the control connection to the port: responses, held ports, resumes and releases.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { CAPABILITY } from '@tunnel/protocol';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl, WINDOW_MS } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;
const sockets: Socket[] = [];
beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, ports: 3 });
});
afterEach(async () => {
  await fixture.stop();
  for (const socket of sockets.splice(0)) socket.close();
});

const enter = (resume?: { session_id: string; secret: string }) =>
  RawClient.enter(fixture.port, 'alice', resume, [CAPABILITY.DATAGRAM]);

const bind = async (port: number): Promise<Socket | null> => {
  const socket = createSocket('udp4').bind(port, '127.0.0.1');
  try {
    await once(socket, 'listening');
    sockets.push(socket);
    return socket;
  } catch {
    socket.close();
    return null;
  }
};

const isFree = async (port: number): Promise<boolean> => {
  const socket = await bind(port);
  sockets.splice(0, socket === null ? 0 : sockets.length);
  socket?.close();
  return socket !== null;
};

const udp = (fields: object = {}) => ({ protocol: 'udp', name: 'dns', ...fields });

describe('the registration of a udp tunnel', () => {
  it('gets the public address once the port is bound', async () => {
    const { client } = await enter();
    const answer = await client.registered(udp({ idle_secs: 30 }));
    const port = answer.assigned_port as number;
    expect(answer).toMatchObject({
      name: 'dns',
      protocol: 'udp',
      label: String(port),
      public_url: `udp://edge.test:${port}`,
      warnings: [],
    });
    expect(fixture.tunnels.at({ kind: 'port', transport: 'udp', port })).toMatchObject({
      tunnelId: answer.tunnel_id,
      flowIdleSecs: 30,
    });
    expect(fixture.backend.opened).toMatchObject([{ protocol: 'udp', label: String(port) }]);
    expect(await isFree(port)).toBe(false);
  });

  it('can have the same port number as a tcp tunnel', async () => {
    const { client } = await enter();
    const { assigned_port } = await client.registered();
    expect((await client.registered(udp({ remote_port: assigned_port }))).assigned_port).toBe(assigned_port);
  });

  it('skips a port of another program, and names udp_port_range when no port is left', async () => {
    const { client } = await enter();
    const { from, to } = fixture.range;
    await bind(from);
    expect((await client.refused(udp({ remote_port: from }))).message).toBe(`port ${from} is already in use`);
    expect((await client.registered(udp())).assigned_port).not.toBe(from);
    await client.registered(udp());
    expect(await client.refused(udp())).toMatchObject({
      code: 'TUNNEL_PORTS_EXHAUSTED',
      message: `no free port left in udp_port_range ${from}-${to}`,
      retryable: true,
    });
    expect((await client.refused(udp({ remote_port: 80 }))).message).toBe(`port 80 is not allowed: use ${from}-${to}`);
  });

  it('with a group is refused', async () => {
    const { client } = await enter();
    const group = { group: 'db', group_key_hash: 'ab'.repeat(32) };
    expect((await client.refused(udp(group))).message).toBe('groups exist for http and tcp tunnels only');
  });
});

describe('a udp tunnel with a lost client', () => {
  const lost = async () => {
    const { client, welcome } = await enter();
    const tunnel = await client.registered(udp());
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    const claim = { session_id: welcome.session_id, secret: welcome.resume_secret };
    return { port: tunnel.assigned_port as number, tunnel, claim };
  };

  it('keeps its port, drops datagrams meanwhile, and is resumed under the same id', async () => {
    const { port, tunnel, claim } = await lost();
    const visitor = (await bind(0)) as Socket;
    visitor.send('hello', port, '127.0.0.1');
    await eventually(() => expect(fixture.udp.dropped.away).toBe(1));
    expect(fixture.udp.totals.flows).toBe(0);
    await clock.advance(WINDOW_MS - 1000);
    expect(await isFree(port)).toBe(false);
    const back = await enter(claim);
    const again = await back.client.registered(udp({ tunnel_id: tunnel.tunnel_id }));
    expect(again).toMatchObject({ tunnel_id: tunnel.tunnel_id, assigned_port: port });
    expect(fixture.udp.at(port)?.dropped.away).toBe(1);
  });

  it('gives its port back if the client does not return', async () => {
    const { port } = await lost();
    await clock.advance(WINDOW_MS + 1000);
    await eventually(async () => expect(await isFree(port)).toBe(true));
    expect(fixture.udp.at(port)).toBeUndefined();
  });
});

it('a closed udp tunnel gives its port back at once', async () => {
  const { client } = await enter();
  const { assigned_port, tunnel_id } = await client.registered(udp());
  client.send({ type: 'UnregisterTunnel', request_id: 'r2', tunnel_id });
  await client.next('TunnelUnregistered');
  await eventually(async () => expect(await isFree(assigned_port as number)).toBe(true));
  expect((await client.registered(udp({ remote_port: assigned_port }))).assigned_port).toBe(assigned_port);
});

describe('drops reported by a client', () => {
  const row = { visitor: '203.0.113.9:50000', direction: 'out', reason: 'path', datagrams: 7 };

  it('are counted for its own tunnel only', async () => {
    const { client } = await enter();
    const { client: other } = await enter();
    const { tunnel_id, assigned_port } = await client.registered(udp());
    const visitor = (await bind(0)) as Socket;
    // Without a carrier the datagram is dropped, and the drop is counted for the port’s tunnel.
    visitor.send('hello', assigned_port as number, '127.0.0.1');
    await eventually(() => expect(fixture.udp.dropped.away).toBe(1));
    client.send({ type: 'DatagramDrops', tunnel_id, drops: [row, { ...row, reason: 'behind', datagrams: 2 }] });
    await eventually(() =>
      expect(fixture.udp.at(assigned_port as number)?.dropped).toMatchObject({ path: 7, behind: 2 }),
    );
    other.send({ type: 'DatagramDrops', tunnel_id, drops: [row] });
    other.send({ type: 'DatagramDrops', tunnel_id: 'tun_none', drops: [row] });
    // The pong shows that the edge has handled the reports before it.
    other.send({ type: 'Ping', id: 1 });
    await other.next('Pong');
    expect(fixture.udp.dropped.path).toBe(7);
  });
});
