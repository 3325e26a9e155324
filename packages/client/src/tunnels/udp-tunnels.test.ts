import type { DatagramStream } from '@tunnel/mux';
import { CAPABILITY } from '@tunnel/protocol';
import { eventually, rethrow, startUdpEcho, type UdpService } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge, type ScriptedSession } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let edge: ScriptedEdge;
let echo: UdpService;
let client: Client;
let events: StatusEvent[];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  echo = await startUdpEcho();
  events = [];
  client = await connect({ server: edge.address, token: 'tnl_test', onStatus: (event) => events.push(event) });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  await echo.close();
});

const open = (session: ScriptedSession, tunnelId: string, heard: string[]): DatagramStream => {
  const stream = session.mux.openDatagrams(
    { tunnelId, visitor: '203.0.113.9:50000' },
    { onOpened: () => {}, onRefused: rethrow, abandon: rethrow },
  );
  if (stream === null) throw new Error('there is no carrier');
  stream.read({
    onDatagram: (bytes, start, end) => heard.push(bytes.toString('latin1', start, end)),
    onReset: () => {},
    abandon: rethrow,
  });
  return stream;
};

const say = (stream: DatagramStream, text: string): void => void stream.send(Buffer.from(text), 0, text.length);

it('a udp tunnel registers its port and idle time, and carries datagrams', async () => {
  const tunnel = await client.open({ protocol: 'udp', localPort: echo.port, remotePort: 20_153, idleSecs: 90 });
  expect(tunnel).toMatchObject({ name: `udp-${echo.port}`, publicUrl: 'udp://test:20153', assignedPort: 20_153 });
  expect(edge.session.all('RegisterTunnel')).toMatchObject([
    { protocol: 'udp', remote_port: 20_153, idle_secs: 90, local_addr: `127.0.0.1:${echo.port}` },
  ]);
  const heard: string[] = [];
  say(open(edge.session, tunnel.tunnelId, heard), 'hello');
  await eventually(() => expect(heard).toEqual(['hello']));
  expect(client.openConnections).toBe(1);
});

it('a udp tunnel is refused without a request when the edge does not support udp', async () => {
  edge.capabilities = [];
  const faults: StatusEvent[] = [];
  const other = await connect({
    server: edge.address,
    token: 'tnl_test',
    onStatus: (event) => event.type === 'tunnel-error' && faults.push(event),
  });
  await expect(other.open({ protocol: 'udp', localPort: 53 })).rejects.toMatchObject({
    code: 'CLIENT_EDGE_TOO_OLD',
    message: 'the edge does not support udp tunnels',
  });
  expect(faults).toMatchObject([{ final: true, fault: { code: 'CLIENT_EDGE_TOO_OLD' } }]);
  expect(edge.session.all('RegisterTunnel')).toEqual([]);
  expect(other.tunnels).toEqual([]);
  await other.close();
});

it('the datagram path is reported when a udp tunnel opens; other tunnels have none', async () => {
  const tunnel = await client.open({ protocol: 'udp', localPort: echo.port });
  const other = await client.open({ protocol: 'tcp', localPort: 1 });
  expect(events.filter((event) => event.type === 'datagrams')).toEqual([
    { type: 'datagrams', tunnel, path: 'carrier', reason: 'off' },
  ]);
  expect([tunnel.datagrams, other.datagrams]).toEqual([{ path: 'carrier', reason: 'off' }, null]);
});

it('dropped datagrams are reported only to an edge that supports the report', async () => {
  const tunnel = await client.open({ protocol: 'udp', localPort: echo.port });
  edge.capabilities = [CAPABILITY.DATAGRAM];
  const other = await connect({ server: edge.address, token: 'tnl_test' });
  const untold = await other.open({ protocol: 'udp', localPort: echo.port });
  const [first, second] = edge.sessions as [ScriptedSession, ScriptedSession];
  await echo.close();
  say(open(first, tunnel.tunnelId, []), 'for nobody');
  say(open(second, untold.tunnelId, []), 'for nobody');
  const drop = { visitor: '203.0.113.9:50000', direction: 'in', reason: 'local', datagrams: 1 };
  await eventually(() =>
    expect(first.all('DatagramDrops')).toEqual([{ type: 'DatagramDrops', tunnel_id: tunnel.tunnelId, drops: [drop] }]),
  );
  await eventually(() => expect(untold.dropped).toEqual({ local: 1 }));
  await other.close();
  expect(second.all('DatagramDrops')).toEqual([]);
  echo = await startUdpEcho();
});
