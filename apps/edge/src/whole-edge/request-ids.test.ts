// Each request has the same id in the captures of the edge and in the events of the client. Tested with a real edge and a real client.
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Client, connect, type RequestEvent, type Tunnel } from '@tunnel/client';
import { loadServerConfig } from '@tunnel/config/server';
import type { CapturedRequest, CaptureList } from '@tunnel/contract';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

type FinishedRequest = Extract<RequestEvent, { type: 'request-finished' }>;

let edge: Edge;
let client: Client;
let service: Server;
let tunnel: Tunnel;
let told: RequestEvent[] = [];
const connections = new Set<Socket>();

beforeAll(async () => {
  const ports = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 };
  const config = loadServerConfig({ env: {}, overrides: { server: { ...ports, domain: 'edge.test' } } });
  const logger = createLogger({ level: 'silent', format: 'json' });
  edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
  await edge.start();
  service = createServer((_, response) => response.end('hello'));
  service.on('connection', (socket) => connections.add(socket));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  client = await connect({ server: `127.0.0.1:${edge.addresses.control.port}`, token: 'admin' });
  client.onRequest((event) => told.push(event));
});
beforeEach(async () => {
  told = [];
  tunnel = await client.open({ protocol: 'http', localPort: (service.address() as AddressInfo).port });
});
afterAll(async () => {
  await client.close();
  await edge.stop({ drainMs: 0 });
  service.closeAllConnections();
  service.close();
});

const visit = (path: string, agent: Agent | false = false): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { host: new URL(tunnel.publicUrl).host };
    const asked = request({ host: '127.0.0.1', port: edge.addresses.http.port, path, headers, agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    asked.once('error', reject).end();
  });

const api = (path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://127.0.0.1:${edge.addresses.api.port}/api/tunnels/${tunnel.tunnelId}${path}`, {
    method,
    headers: { authorization: 'Bearer admin' },
  });

const captures = async (): Promise<readonly CapturedRequest[]> =>
  ((await (await api('/requests')).json()) as CaptureList).requests;

const rowsOf = (list: readonly { readonly id: string; readonly path: string }[]): string[] =>
  list.map(({ id, path }) => `${path} ${id}`).sort();

/** Returns the requests of both sides, once the given number has finished at the edge and at the client. */
const settled = (count: number): Promise<{ atEdge: string[]; atClient: string[] }> =>
  eventually(async () => {
    const finished = told.filter(
      (event): event is FinishedRequest => event.type === 'request-finished' && event.status === 200,
    );
    const kept = (await captures()).filter(({ status }) => status === 200);
    expect([finished.length, kept.length]).toEqual([count, count]);
    return { atEdge: rowsOf(kept), atClient: rowsOf(finished) };
  });

it('each request has the same id at edge and client, on a kept connection and in parallel', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const path of ['/1', '/2', '/3']) expect(await visit(path, agent)).toBe(200);
  agent.destroy();
  await Promise.all(Array.from({ length: 12 }, (_, index) => visit(`/at-once/${index}`)));
  const { atEdge, atClient } = await settled(15);
  expect(atEdge).toEqual(atClient);
  expect(new Set(atEdge.map((row) => row.split(' ')[1])).size).toBe(15);
  // The second request used the local connection of the first.
  expect(atEdge.find((row) => row.startsWith('/2 '))).toMatch(/_2$/);
});

it('a replayed request has the same id at edge and client, and names the original', async () => {
  await visit('/again');
  await settled(1);
  const [original] = await captures();
  const answer = await api(`/requests/${original?.id}/replay`, 'POST');
  const replayed = (await answer.json()) as CapturedRequest;
  expect([answer.status, replayed.replay_of]).toEqual([200, original?.id]);
  const { atEdge, atClient } = await settled(2);
  expect(atEdge).toEqual(atClient);
  expect(atEdge).toContain(`/again ${replayed.id}`);
});

it('a request retried after a closed local connection has the id of the answered try at edge and client', async () => {
  await visit('/first');
  await settled(1);
  // The service closes the connection that is kept for the next request.
  for (const socket of connections) socket.resetAndDestroy();
  expect(await visit('/second')).toBe(200);
  const { atEdge, atClient } = await settled(2);
  expect(atEdge).toEqual(atClient);
});
