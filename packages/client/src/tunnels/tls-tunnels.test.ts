import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { CAPABILITIES } from '@tunnel/protocol';
import { eventually, rethrow, startEchoServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';

let edge: ScriptedEdge;
let echo: TcpServer;
let client: Client;

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  echo = await startEchoServer();
  client = await connect({ server: edge.address, token: 'tnl_test' });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  await echo.close();
});

/** Opens a visitor's stream as the edge does and sends `text`. Returns the list that collects the responses. */
const visit = (tunnelId: string, text: string): string[] => {
  const heard: string[] = [];
  edge.session.mux.open(
    { tunnelId, visitor: '203.0.113.9:50000' },
    {
      onOpened: (stream) => {
        stream.read({
          onData: (bytes, start, end) => {
            heard.push(bytes.toString('latin1', start, end));
            return true;
          },
          onDrain: () => {},
          onEnd: () => {},
          onReset: () => {},
          abandon: rethrow,
        });
        stream.write(Buffer.from(text, 'latin1'), 0, text.length, false);
      },
      onRefused: rethrow,
      abandon: rethrow,
    },
  );
  return heard;
};

it('a tls tunnel registers its host and forwards bytes unchanged', async () => {
  const tunnel = await client.open({ protocol: 'tls', localPort: echo.port, subdomain: 'db' });
  expect(tunnel).toMatchObject({ name: `tls-${echo.port}`, publicUrl: 'tls://db.test:8443', label: 'db.test' });
  const [asked] = edge.session.all('RegisterTunnel');
  expect(asked).toMatchObject({ protocol: 'tls', subdomain: 'db', local_addr: `127.0.0.1:${echo.port}` });
  expect(asked).not.toHaveProperty('preferred_port');
  const hello = '\u0016\u0003\u0001 a ClientHello';
  const heard = visit(tunnel.tunnelId, hello);
  await eventually(() => expect(heard.join('')).toBe(hello));
  expect(tunnel.counts).toMatchObject({ connections: 1, requests: 0 });
});

it('the PROXY header of a tls tunnel precedes the first byte of TLS', async () => {
  const heard: Buffer[] = [];
  const server: Server = createServer((socket) => {
    socket.on('data', (bytes) => heard.push(bytes)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const tunnel = await client.open({ protocol: 'tls', localPort: port, subdomain: 'db', proxyProtocol: 'v1' });
  visit(tunnel.tunnelId, '\u0016\u0003\u0001');
  await eventually(() => expect(Buffer.concat(heard).toString('latin1')).toMatch(/^PROXY .*\r\n\u0016\u0003\u0001$/));
  server.close();
});

it('a tls tunnel is refused without a request when the edge does not support tls', async () => {
  edge.capabilities = CAPABILITIES.filter((name) => name !== 'tls');
  const other = await connect({ server: edge.address, token: 'tnl_test' });
  const spec = { protocol: 'tls', localPort: 1 } as const;
  for (const host of [{ subdomain: 'db' }, { domain: 'db.example.net' }]) {
    await expect(other.open({ ...spec, ...host })).rejects.toMatchObject({
      code: 'CLIENT_EDGE_TOO_OLD',
      message: 'the edge does not support tls tunnels',
    });
  }
  expect(edge.session.all('RegisterTunnel')).toEqual([]);
  await other.close();
});
