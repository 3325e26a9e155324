// Requests that the edge answers without a service, and the reports about them to clients: a real edge and real clients over real
// sockets.
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { type Client, connect, type RequestEvent, type Tunnel, type TunnelOptions } from '@tunnel/client';
import { loadServerConfig } from '@tunnel/config/server';
import type { CapturedRequest, CaptureList } from '@tunnel/contract';
import { CAPABILITIES, CAPABILITY, WIRE_LIMITS } from '@tunnel/protocol';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

type EdgeAnswered = Extract<RequestEvent, { type: 'edge-answered' }>;

let edge: Edge;
let client: Client;
let told: RequestEvent[] = [];

beforeAll(async () => {
  const ports = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 };
  const config = loadServerConfig({
    env: {},
    overrides: { server: { ...ports, domain: 'edge.test' }, load_balancing: { enabled: true } },
  });
  const logger = createLogger({ level: 'silent', format: 'json' });
  edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
  await edge.start();
  client = await newClient();
});
beforeEach(() => {
  told = [];
});
afterAll(async () => {
  await client.close();
  await edge.stop({ drainMs: 0 });
});

const newClient = async (heard: (event: RequestEvent) => void = (event) => told.push(event)): Promise<Client> => {
  const made = await connect({ server: `127.0.0.1:${edge.addresses.control.port}`, token: 'admin' });
  made.onRequest(heard);
  return made;
};

/** Returns a port without a listening program. */
const unusedPort = async (): Promise<number> => {
  const server = createServer();
  const port = await listen(server, 0);
  await new Promise((resolve) => server.close(resolve));
  return port;
};

const listen = async (server: Server, port: number): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};

const OFFICE: NonNullable<TunnelOptions['policy']> = [
  { name: 'office', match: { path: '/admin/**' }, allow_addresses: ['10.0.0.0/8'] },
];

const visit = (tunnel: Pick<Tunnel, 'publicUrl'>, path: string, body = ''): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { host: new URL(tunnel.publicUrl).host };
    const method = body === '' ? 'GET' : 'POST';
    const { port } = edge.addresses.http;
    const asked = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    asked.once('error', reject).end(body);
  });

const api = (tunnelId: string, path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://127.0.0.1:${edge.addresses.api.port}/api/tunnels/${tunnelId}${path}`, {
    method,
    headers: { authorization: 'Bearer admin' },
  });

const captures = async (tunnelId: string): Promise<readonly CapturedRequest[]> =>
  ((await (await api(tunnelId, '/requests')).json()) as CaptureList).requests;

const answered = (events: readonly RequestEvent[] = told): EdgeAnswered[] =>
  events.filter((event): event is EdgeAnswered => event.type === 'edge-answered');

const firstAnswered = (events: readonly RequestEvent[] = told): Promise<EdgeAnswered> =>
  eventually(() => {
    const [first] = answered(events);
    if (first === undefined) throw new Error('none so far');
    return first;
  });

it('a request to a stopped service is reported to the client with its capture id, and can be replayed', async () => {
  const port = await unusedPort();
  const tunnel = await client.open({ protocol: 'http', localPort: port });
  expect(await visit(tunnel, '/hook?page=1&token=hunter2', 'paid')).toBe(502);
  const event = await firstAnswered();
  const [kept] = await captures(tunnel.tunnelId);
  expect(event).toMatchObject({
    id: kept?.id,
    tunnel,
    method: 'POST',
    path: '/hook?page=1&token=…',
    replayOf: null,
    status: 502,
    code: 'LOCAL_UNREACHABLE',
    rule: null,
  });
  expect(Math.abs(event.at - Date.parse(kept?.at ?? ''))).toBeLessThan(1000);
  expect([kept?.replayable, kept?.error]).toEqual([true, 'LOCAL_UNREACHABLE']);
  expect(tunnel.counts).toMatchObject({ requests: 0, edgeAnswered: 1 });
  const bodies: string[] = [];
  const service = createServer((received, response) => {
    let body = '';
    received.on('data', (piece) => (body += String(piece)));
    received.on('end', () => {
      bodies.push(body);
      response.end();
    });
  });
  await listen(service, port);
  expect((await api(tunnel.tunnelId, `/requests/${event.id}/replay`, 'POST')).status).toBe(200);
  expect(bodies).toEqual(['paid']);
  await tunnel.close();
  service.closeAllConnections();
  service.close();
});

it('a request that a rule rejected is reported with the name of the rule, and cannot be replayed', async () => {
  const tunnel = await client.open({ protocol: 'http', localPort: await unusedPort(), policy: OFFICE });
  expect(await visit(tunnel, '/admin/users')).toBe(403);
  const event = await firstAnswered();
  const [kept] = await captures(tunnel.tunnelId);
  expect(event).toMatchObject({
    id: kept?.id,
    path: '/admin/users',
    status: 403,
    code: 'POLICY_DENIED',
    rule: 'office',
  });
  expect(kept).toMatchObject({ replayable: false, policy: { answered_by: { name: 'office' } } });
  await tunnel.close();
});

it('the visitor gets the request id of captures and client on the page, in JSON and in the head', async () => {
  const tunnel = await client.open({ protocol: 'http', localPort: await unusedPort(), policy: OFFICE });
  const read = (path: string, accept: string): Promise<{ id: unknown; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = { host: new URL(tunnel.publicUrl).host, accept };
      request({ host: '127.0.0.1', port: edge.addresses.http.port, path, headers, agent: false }, (response) => {
        let text = '';
        response.on('data', (piece) => (text += String(piece)));
        response.once('end', () => resolve({ id: response.headers['x-request-id'], text }));
      })
        .once('error', reject)
        .end();
    });
  const page = await read('/', 'text/html');
  const json = await read('/', 'application/json');
  const denied = await read('/admin/x', 'text/html');
  const kept = (await captures(tunnel.tunnelId)).map(({ id }) => id);
  expect([denied.id, json.id, page.id]).toEqual(kept);
  expect(page.text).toContain(`request ${String(page.id)}`);
  expect(JSON.parse(json.text)).toMatchObject({ code: 'LOCAL_UNREACHABLE', request_id: json.id });
  await eventually(() => expect(answered().map(({ id }) => id)).toEqual([page.id, json.id, denied.id]));
  await tunnel.close();
});

it('in a group, every client gets a report with the same request id', async () => {
  const ofOthers: RequestEvent[] = [];
  const other = await newClient((event) => ofOthers.push(event));
  const spec = { protocol: 'http', localPort: await unusedPort(), policy: OFFICE } as const;
  const group = { group: 'shop', groupKey: 'a key of the group that is long enough', subdomain: 'shop' };
  const tunnel = await client.open({ ...spec, ...group });
  const member = await other.open({ ...spec, ...group });
  expect(await visit(tunnel, '/admin/x')).toBe(403);
  const ours = await firstAnswered();
  const theirs = await firstAnswered(ofOthers);
  expect([ours.tunnel, theirs.tunnel]).toEqual([tunnel, member]);
  expect(ours.id).toBe(theirs.id);
  for (const { tunnelId } of [tunnel, member]) expect((await captures(tunnelId))[0]?.id).toBe(ours.id);
  await other.close();
  await tunnel.close();
});

it('a client without the capability for edge answers gets no such message', async () => {
  const { port } = edge.addresses.control;
  const older = CAPABILITIES.filter((name) => name !== CAPABILITY.EDGE_ANSWERS);
  const { client: raw } = await RawClient.enter(port, 'admin', undefined, older);
  const registered = await raw.registered({ protocol: 'http', name: 'web' });
  expect(await visit({ publicUrl: registered.public_url }, '/')).toBe(502);
  await raw.settle();
  expect(raw.heard.filter(({ type }) => type.startsWith('EdgeAnswered'))).toEqual([]);
  raw.ws.close();
});

/** Sends many requests over one connection without waiting for responses. Resolves when all responses have arrived. */
const flood = ({ publicUrl }: Tunnel, count: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connectTcp(edge.addresses.http.port, '127.0.0.1');
    const start = 'HTTP/1.1 403 ';
    let heads = 0;
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => {
      const text = rest + piece;
      heads += text.split(start).length - 1;
      // A piece can end within the start of the next response. The text kept for the next piece is too short to be counted twice.
      rest = text.slice(1 - start.length);
      if (heads < count) return;
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
    const one = `GET /admin/x HTTP/1.1\r\nHost: ${new URL(publicUrl).host}\r\n\r\n`;
    const sendSome = (left: number): void => {
      if (left === 0) return;
      const now = Math.min(left, 50);
      socket.write(one.repeat(now), () => sendSome(left - now));
    };
    sendSome(count);
  });

it('10,000 failing requests are reported as 20 messages per second and a count', async () => {
  const tunnel = await client.open({ protocol: 'http', localPort: await unusedPort(), policy: OFFICE });
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: 20 }, () => flood(tunnel, 500)));
  const countOf = (): number =>
    told.reduce((sum, event) => sum + (event.type === 'edge-answered-more' ? event.count : 0), answered().length);
  await eventually(() => expect(countOf()).toBe(10_000));
  const seconds = Math.ceil((performance.now() - startedMs) / 1000);
  expect(answered().length).toBeGreaterThanOrEqual(WIRE_LIMITS.EDGE_ANSWERS_PER_SECOND);
  expect(answered().length).toBeLessThanOrEqual(WIRE_LIMITS.EDGE_ANSWERS_PER_SECOND * (seconds + 1));
  expect(tunnel.counts).toMatchObject({ requests: 0, edgeAnswered: 10_000 });
  await tunnel.close();
});
