import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, freePort } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { tryPort } from './control/control.fixture.ts';
import { echoMux, openCarrier } from './control/raw-carrier.fixture.ts';
import { RawClient } from './control/raw-client.fixture.ts';
import { createEdge } from './edge.ts';
import type { Edge } from './edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const edges: Edge[] = [];
const openSockets: Socket[] = [];

const makeEdge = (server: object = {}): Edge => {
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'edge.test', ...server },
      limits: { tcp_port_range: [30_100, 30_999] },
    },
  });
  const edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
  edges.push(edge);
  return edge;
};

afterEach(async () => {
  for (const socket of openSockets.splice(0)) socket.destroy();
  for (const edge of edges.splice(0)) await edge.stop({ drainMs: 0 });
});

/** Connects a client with one carrier and one tunnel to an echo service. */
const publishEcho = async (edge: Edge) => {
  const { client, welcome } = await RawClient.enter(edge.addresses.control.port, 'admin');
  const mux = echoMux();
  mux.addCarrier(await openCarrier(edge.addresses.control.port, welcome.carriers.tokens[0] as string));
  const tunnel = await client.registered();
  return { client, mux, tunnel, port: tunnel.assigned_port as number };
};

const visit = async (port: number): Promise<Socket> => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  openSockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
};

const say = async (socket: Socket, text: string): Promise<string> => {
  socket.write(text);
  return String((await once(socket, 'data'))[0]);
};

const resetOf = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });

const api = async (edge: Edge, path: string, method = 'GET'): Promise<unknown> => {
  const url = `http://127.0.0.1:${edge.addresses.api.port}${path}`;
  const response = await fetch(url, { method, headers: { authorization: 'Bearer admin' } });
  return response.status === 204 ? 204 : response.json();
};

const metricsOf = async (edge: Edge): Promise<string> =>
  (await fetch(`http://127.0.0.1:${edge.addresses.metrics.port}/metrics`)).text();

const reaches = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

describe('a running edge', () => {
  it('carries bytes between visitor and client, and shows the tunnel in the API and metrics', async () => {
    const edge = makeEdge();
    await edge.start();
    const { mux, tunnel, port } = await publishEcho(edge);
    const visitor = await visit(port);
    expect(await say(visitor, 'hello')).toBe('hello');
    expect(mux.visitors).toEqual([`127.0.0.1:${visitor.localPort}`]);
    expect(await api(edge, '/api/tunnels')).toMatchObject([
      { tunnel_id: tunnel.tunnel_id, public_url: `tcp://edge.test:${port}`, request_count: 1, bytes_proxied: 10 },
    ]);
    expect(await api(edge, '/api/status')).toMatchObject({ sessions: 1, tunnels: 1, draining: false });
    expect(await metricsOf(edge)).toMatch(/^tunnel_active_sessions 1$/m);
  });

  it('lets an open connection finish after its client is cut off, and accepts no new connection', async () => {
    const edge = makeEdge();
    await edge.start();
    const { client, port } = await publishEcho(edge);
    const visitor = await visit(port);
    await say(visitor, 'before');
    client.ws.terminate();
    await eventually(async () => expect(await reaches(port)).toBe(false));
    expect(await say(visitor, 'after')).toBe('after');
    visitor.end();
    await once(visitor.resume(), 'end');
    await eventually(async () => expect(await metricsOf(edge)).toMatch(/^tunnel_active_carriers 0$/m));
  });

  it('closes a tunnel by DELETE while its open connections finish', async () => {
    const edge = makeEdge();
    await edge.start();
    const { client, tunnel, port } = await publishEcho(edge);
    const visitor = await visit(port);
    await say(visitor, 'before');
    expect(await api(edge, `/api/tunnels/${tunnel.tunnel_id}`, 'DELETE')).toBe(204);
    expect(await client.next('TunnelError')).toMatchObject({ tunnel_id: tunnel.tunnel_id });
    expect(await reaches(port)).toBe(false);
    expect(await say(visitor, 'after')).toBe('after');
  });
});

describe('a stop of the edge', () => {
  it('notifies clients, accepts no tunnels, waits for the last connection, and closes with 1001', async () => {
    const edge = makeEdge();
    await edge.start();
    const { client, port } = await publishEcho(edge);
    const { control } = edge.addresses;
    const visitor = await visit(port);
    await say(visitor, 'before');
    const stopped = edge.stop({ drainMs: 60_000 });
    expect(await client.next('ShuttingDown')).toMatchObject({ drain_secs: 60 });
    await eventually(async () => expect([await reaches(port), await reaches(control.port)]).toEqual([false, false]));
    expect(await api(edge, '/api/status')).toMatchObject({ draining: true });
    expect((await client.refused()).code).toBe('EDGE_SHUTTING_DOWN');
    expect(await say(visitor, 'still here')).toBe('still here');
    visitor.end();
    await stopped;
    expect((await client.closed).code).toBe(1001);
  });

  it('resets connections still open after the drain time', async () => {
    const edge = makeEdge();
    await edge.start();
    const { client, port } = await publishEcho(edge);
    const visitor = await visit(port);
    await say(visitor, 'before');
    const reset = resetOf(visitor);
    await edge.stop({ drainMs: 50 });
    expect(await reset).toBe('ECONNRESET');
    expect((await client.closed).code).toBe(1001);
  });

  it('without a drain resets every connection at once', async () => {
    const edge = makeEdge();
    await edge.start();
    const { client, port } = await publishEcho(edge);
    const visitor = await visit(port);
    await say(visitor, 'before');
    const reset = resetOf(visitor);
    edge.stopNow();
    expect(await reset).toBe('ECONNRESET');
    expect((await client.closed).code).toBe(1006);
  });

  it('leaves no port open, at any moment of its start', async () => {
    const port = await freePort();
    let isStarted = false;
    for (let turns = 0; !isStarted; turns += 1) {
      const edge = makeEdge({ host: 'localhost', control_port: port });
      const starting = edge.start().then(
        () => (isStarted = true),
        () => undefined,
      );
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      edge.stopNow();
      await starting;
      await edge.stop({ drainMs: 0 });
      const again = await tryPort(port);
      expect([turns, again !== null]).toEqual([turns, true]);
      await new Promise((resolve) => again?.close(resolve));
    }
  });
});

describe('a start with a port in use', () => {
  it.each(['control_port', 'api_port', 'metrics_port'])(
    'for %s fails with the port and its config key, and leaves no port open',
    async (key) => {
      const squatter = createServer().listen(0, '127.0.0.1');
      await once(squatter, 'listening');
      const { port } = squatter.address() as AddressInfo;
      const other = await freePort();
      const edge = makeEdge({ api_port: other, [key]: port });
      await expect(edge.start()).rejects.toMatchObject({
        code: 'CONFIG_PORT_TAKEN',
        message: `port ${port} on 127.0.0.1 is already in use ([server] ${key})`,
      });
      expect(await reaches(other)).toBe(false);
      squatter.close();
    },
  );
});
