// Visitors routed by the edge to a named service, and the PROXY protocol header before their first byte.
import type { MuxStream } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { eventually, rethrow, startTcpServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let edge: ScriptedEdge;
let client: Client;
let events: StatusEvent[];
const services: TcpServer[] = [];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  events = [];
  client = await connect({
    server: edge.address,
    token: 'tnl_test',
    random: () => -1,
    onStatus: (event) => events.push(event),
  });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  await Promise.all(services.splice(0).map((service) => service.close()));
});

/** Starts a service, and records the received text. */
const listening = async (): Promise<{ port: number; heard: () => string; connections: () => number }> => {
  let text = '';
  let connections = 0;
  const server = await startTcpServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
    });
  });
  services.push(server);
  return { port: server.port, heard: () => text, connections: () => connections };
};

const open = (head: StreamHead): Promise<MuxStream | StreamReason> =>
  new Promise((resolve) => {
    edge.session.mux.open(head, { onOpened: resolve, onRefused: resolve, abandon: rethrow });
  });

const say = async (head: StreamHead, text: string): Promise<void> => {
  const stream = (await open(head)) as MuxStream;
  const bytes = Buffer.from(text);
  stream.write(bytes, 0, bytes.length, false);
};

const visitor = '203.0.113.9:50000';

describe('a named service', () => {
  it('is dialed as configured, and the tunnel’s own service is dialed without a name', async () => {
    const own = await listening();
    const api = await listening();
    const { tunnelId } = await client.open({ protocol: 'http', localPort: own.port, services: { api: api.port } });
    await say({ tunnelId, visitor, service: 'api' }, 'to api');
    await say({ tunnelId, visitor }, 'to own');
    await eventually(() => expect([own.heard(), api.heard()]).toEqual(['to own', 'to api']));
  });

  it('that is not configured is refused without a dial', async () => {
    const own = await listening();
    const { tunnelId } = await client.open({ protocol: 'http', localPort: own.port, services: {} });
    for (const service of ['api', 'toString', '127.0.0.1:1']) {
      expect(await open({ tunnelId, visitor, service })).toMatchObject({ code: 'dial-refused' });
    }
    expect(own.connections()).toBe(0);
    const [error] = events.filter((event) => event.type === 'local-error');
    expect(error?.fault.message).toContain("service 'api'");
  });
});

describe('a service from a policy update', () => {
  const policy = [{ match: { path: '/beta/**' }, route: 'beta' }];

  it('serves a visitor who arrives before the response of the edge', async () => {
    const own = await listening();
    const beta = await listening();
    const tunnel = await client.open({ protocol: 'http', localPort: own.port });
    let answer: () => void = () => {};
    edge.script = {
      RegisterTunnel: (message, session) => {
        answer = () => void edge.registered(session, message);
        return true;
      },
    };
    const updated = tunnel.update({ policy, services: { beta: beta.port } });
    await eventually(() => expect(edge.session.all('RegisterTunnel')).toHaveLength(2));
    await say({ tunnelId: tunnel.tunnelId, visitor, service: 'beta' }, 'early');
    await eventually(() => expect(beta.heard()).toBe('early'));
    answer();
    await updated;
  });

  it('is not dialed when the edge refused the update', async () => {
    const own = await listening();
    const beta = await listening();
    const tunnel = await client.open({ protocol: 'http', localPort: own.port });
    edge.script = {
      RegisterTunnel: ({ request_id }, session) => {
        session.send({ type: 'TunnelError', request_id, code: 'POLICY_INVALID', message: 'no', retryable: false });
        return true;
      },
    };
    await expect(tunnel.update({ policy, services: { beta: beta.port } })).rejects.toThrow('no');
    const head = { tunnelId: tunnel.tunnelId, visitor, service: 'beta' };
    expect(await open(head)).toMatchObject({ code: 'dial-refused' });
    expect(beta.connections()).toBe(0);
  });
});

const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n';

describe('the PROXY protocol', () => {
  it.each([
    [visitor, '198.51.100.7:20153', 'PROXY TCP4 203.0.113.9 198.51.100.7 50000 20153\r\n'],
    ['[2001:db8::9]:1', '[2001:db8::7]:2', 'PROXY TCP6 2001:db8::9 2001:db8::7 1 2\r\n'],
    ['[2001:db8::9]:1', undefined, 'PROXY TCP6 2001:db8::9 :: 1 20001\r\n'],
  ])('version 1 sends a line before the first byte: %s at %s', async (from, publicAddress, line) => {
    const service = await listening();
    const { tunnelId } = await client.open({ protocol: 'tcp', localPort: service.port, proxyProtocol: 'v1' });
    await say({ tunnelId, visitor: from, ...(publicAddress === undefined ? {} : { publicAddress }) }, 'hello');
    await eventually(() => expect(service.heard()).toBe(`${line}hello`));
    expect(edge.session.all('RegisterTunnel')[0]?.proxy_protocol).toBe('v1');
  });

  it('version 2 sends a header before the first byte', async () => {
    const service = await listening();
    const { tunnelId } = await client.open({ protocol: 'tcp', localPort: service.port, proxyProtocol: 'v2' });
    await say({ tunnelId, visitor, publicAddress: '198.51.100.7:20153' }, 'hello');
    const addresses = Buffer.from('2111000ccb007109c6336407c3504eb9', 'hex').toString('latin1');
    await eventually(() => expect(service.heard()).toBe(`${SIGNATURE}${addresses}hello`));
  });

  it('header is sent even if the visitor sends nothing', async () => {
    const service = await listening();
    const { tunnelId } = await client.open({ protocol: 'tcp', localPort: service.port, proxyProtocol: 'v1' });
    await open({ tunnelId, visitor, publicAddress: '198.51.100.7:20153' });
    await eventually(() => expect(service.heard()).toMatch(/^PROXY TCP4 .*\r\n$/));
  });

  it('header is sent only when configured', async () => {
    const service = await listening();
    const { tunnelId } = await client.open({ protocol: 'tcp', localPort: service.port });
    await say({ tunnelId, visitor, publicAddress: '198.51.100.7:20153' }, 'hello');
    await eventually(() => expect(service.heard()).toBe('hello'));
  });
});
