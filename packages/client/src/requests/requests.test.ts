// Events about requests through a client, over real sockets and streams, against the scripted edge.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { MuxStream } from '@tunnel/mux';
import { requestIdOf } from '@tunnel/protocol';
import { eventually, RecordingReader, rethrow, testCertificate } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';
import type { TunnelOptions } from '../tunnels/tunnel-spec.ts';
import type { RequestEvent } from './request-record.ts';

let edge: ScriptedEdge;
let client: Client;
let statuses: StatusEvent[];
let events: RequestEvent[];
const servers: Server[] = [];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  statuses = [];
  events = [];
  client = await connect({ server: edge.address, token: 't', onStatus: (event) => statuses.push(event) });
});
afterEach(async () => {
  await client.close();
  await edge.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const serve = async (handler: Handler, secure = false): Promise<number> => {
  const server = secure ? (createSecureServer(testCertificate(), handler) as unknown as Server) : createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};

const open = (localPort: number, spec: Partial<TunnelOptions> = {}): Promise<Tunnel> =>
  client.open({ protocol: 'http', name: 'web', localPort, ...spec });

interface Visit {
  readonly stream: MuxStream;
  readonly reader: RecordingReader;
}

/** Opens a stream for a visitor, as the edge's ingress does. */
const visit = (tunnel: Tunnel): Promise<Visit> =>
  new Promise((resolve, reject) => {
    edge.session.mux.open(
      { tunnelId: tunnel.tunnelId, visitor: '' },
      {
        onOpened: (stream) => resolve({ stream, reader: new RecordingReader(stream) }),
        onRefused: (reason) => reject(new Error(`${reason.code}: ${reason.text}`)),
        abandon: rethrow,
      },
    );
  });

const say = ({ stream }: Visit, text: string): void => {
  const bytes = Buffer.from(text);
  stream.write(bytes, 0, bytes.length, false);
};

const listen = (): (() => void) => client.onRequest((event) => events.push(event));
const finished = (): RequestEvent[] => events.filter(({ type }) => type === 'request-finished');
const GET = 'GET /a?page=2&access_token=abc HTTP/1.1\r\nHost: x\r\n\r\n';

describe('request events', () => {
  it('report the start and the end of a request, without the secrets of its query', async () => {
    listen();
    const tunnel = await open(await serve((_request, response) => response.end('hello')));
    const visitor = await visit(tunnel);
    say(visitor, GET);
    await eventually(() => expect(finished()).toHaveLength(1));
    // The request id equals the id at the edge, because the scripted edge opens its streams as a real edge does.
    const facts = {
      id: requestIdOf(visitor.stream, 1),
      tunnel,
      method: 'GET',
      path: '/a?page=2&access_token=…',
      replayOf: null,
    };
    expect(events[0]).toMatchObject({ type: 'request-started', ...facts });
    expect(events[1]).toMatchObject({
      type: 'request-finished',
      ...facts,
      status: 200,
      requestBytes: 0,
      responseBytes: 5,
      aborted: false,
    });
    say(visitor, 'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc');
    await eventually(() => expect(finished()).toHaveLength(2));
    expect(finished()[1]).toMatchObject({ id: requestIdOf(visitor.stream, 2), path: '/b', requestBytes: 3 });
  });

  it('report a request as aborted when the visitor leaves', async () => {
    listen();
    const tunnel = await open(await serve((_request, response) => void response.write('never ends')));
    const visitor = await visit(tunnel);
    say(visitor, GET);
    await eventually(() => expect(visitor.reader.bytes).toBeGreaterThan(0));
    visitor.stream.reset({ code: 'cancelled', text: 'the visitor left' });
    await eventually(() => expect(finished()).toMatchObject([{ status: 200, aborted: true }]));
  });

  it('skip requests that start while there is no listener', async () => {
    const stop = listen();
    const tunnel = await open(await serve((_request, response) => response.end()));
    const visitor = await visit(tunnel);
    stop();
    say(visitor, GET);
    await eventually(() => expect(visitor.reader.bytes).toBeGreaterThan(0));
    listen();
    say(visitor, GET);
    await eventually(() => expect(visitor.reader.bytes).toBeGreaterThan(200));
    expect(events).toEqual([]);
  });

  it.each<[string, Partial<TunnelOptions>]>([
    ['of an h2c service', { localProtocol: 'h2c' }],
    ['in a tcp tunnel', { protocol: 'tcp' }],
  ])('skip a request %s', async (_, spec) => {
    listen();
    const tunnel = await open(await serve((_request, response) => response.end()), spec);
    const visitor = await visit(tunnel);
    say(visitor, GET);
    await eventually(() => expect(visitor.reader.bytes).toBeGreaterThan(0));
    expect(events).toEqual([]);
  });
});

describe('an https tunnel', () => {
  it('reaches a local service that speaks TLS', async () => {
    listen();
    const port = await serve((_request, response) => response.end('secret'), true);
    const visitor = await visit(await open(port, { protocol: 'https', localTlsVerify: false }));
    say(visitor, GET);
    await eventually(() => expect(finished()).toMatchObject([{ status: 200, responseBytes: 6 }]));
  });

  it('reports an untrusted local certificate to the edge and to the owner', async () => {
    const port = await serve((_request, response) => response.end(), true);
    const tunnel = await open(port, { protocol: 'https' });
    const words = `the certificate of 127.0.0.1:${port} is not trusted: self-signed certificate`;
    await expect(visit(tunnel)).rejects.toThrow(`dial-refused: ${words}`);
    await eventually(() =>
      expect(statuses).toContainEqual(
        expect.objectContaining({
          type: 'local-error',
          fault: expect.objectContaining({ code: 'CLIENT_LOCAL_CERTIFICATE' }) as object,
        }),
      ),
    );
  });

  it('reports that the local service does not speak TLS', async () => {
    const port = await serve((_request, response) => response.end());
    const tunnel = await open(port, { protocol: 'https' });
    await expect(visit(tunnel)).rejects.toThrow(`cannot connect to 127.0.0.1:${port}: the service does not speak TLS`);
  });
});

describe('requests that the edge answered without the local service', () => {
  const MESSAGE = {
    type: 'EdgeAnswered',
    request_id: 'req_run000001',
    at: '2030-01-01T00:00:00.000Z',
    method: 'GET',
    path: '/x?token=[redacted]',
    status: 403,
    code: 'POLICY_DENIED',
    rule: 'office',
    duration_ms: 1.5,
  } as const;

  it('are events with a separate count, and are skipped for unknown tunnels', async () => {
    listen();
    const tunnel = await open(1);
    edge.session.send({ ...MESSAGE, tunnel_id: 'tun_none' });
    edge.session.send({ ...MESSAGE, tunnel_id: tunnel.tunnelId });
    edge.session.send({ type: 'EdgeAnsweredMore', tunnel_id: tunnel.tunnelId, count: 7 });
    await eventually(() => expect(events).toHaveLength(2));
    expect(events).toEqual([
      {
        type: 'edge-answered',
        id: 'req_run000001',
        tunnel,
        method: 'GET',
        path: '/x?token=…',
        replayOf: null,
        at: Date.parse(MESSAGE.at),
        status: 403,
        code: 'POLICY_DENIED',
        rule: 'office',
        durationMs: 1.5,
      },
      { type: 'edge-answered-more', tunnel, count: 7 },
    ]);
    expect(tunnel.counts).toMatchObject({ requests: 0, edgeAnswered: 8 });
  });
});
