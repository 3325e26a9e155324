// An edge and a client in one process with a clock that runs 30 times as fast, so that limits of half a minute pass in about a second. If
// any part used the system's clock, these tests would take as long as the limits.

import { type Client, type ConnectOptions, connect, type StatusEvent } from '@tunnel/client';
import { loadServerConfig } from '@tunnel/config/server';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { createLogger, Secret } from '@tunnel/runtime';
import {
  claimPortBlock,
  eventually,
  FastClock,
  type PortBlock,
  type Relay,
  startEchoServer,
  startRelay,
  type TcpServer,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RESUME_WINDOW_MS } from '../control/limits.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

/** Maximum real time of a test, even on a busy machine. All limits together would take longer. */
const REAL_MAX_MS = 20_000;

let clock: FastClock;
let edge: Edge;
let echo: TcpServer;
let relay: Relay;
let startedMs: number;
let clients: Client[];
let ports: PortBlock;

beforeEach(async () => {
  startedMs = performance.now();
  clock = new FastClock(30);
  clients = [];
  ports = await claimPortBlock();
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 };
  const limits = { tcp_port_range: [ports.from, ports.to] as [number, number] };
  const config = loadServerConfig({ env: {}, overrides: { server, limits } });
  edge = createEdge(config, {
    clock,
    logger: createLogger({ level: 'silent', format: 'json' }),
    adminToken: new Secret('admin'),
  });
  await edge.start();
  echo = await startEchoServer();
  relay = await startRelay({ target: { port: edge.addresses.control.port } });
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.close({ drainMs: 0 })));
  await relay.close();
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await ports.close();
});

const start = async (port: number, options: Partial<ConnectOptions> = {}): Promise<Client> => {
  const client = await connect({ server: `127.0.0.1:${port}`, token: 'admin', clock, ...options });
  clients.push(client);
  return client;
};

describe('with a clock that runs 30 times as fast', () => {
  it('the port of a lost client is held for 30 s and then free', async () => {
    const lost = await start(relay.port);
    const { assignedPort } = await lost.open({ protocol: 'tcp', localPort: echo.port });
    const other = await start(edge.addresses.control.port);
    const refusals = new Set<unknown>();
    const claim = () =>
      other
        .open({ protocol: 'tcp', localPort: echo.port, remotePort: assignedPort ?? 0 })
        .catch((error: { code: string }) => {
          refusals.add(error.code);
          throw error;
        });
    await relay.close();
    const cutAt = clock.monotonic();
    await eventually(claim, { timeoutMs: REAL_MAX_MS, intervalMs: 10 });
    const heldMs = clock.monotonic() - cutAt;
    expect(heldMs).toBeGreaterThan(RESUME_WINDOW_MS - 1000);
    expect([...refusals]).toEqual(['TUNNEL_PORT_IN_USE']);
    expect(performance.now() - startedMs).toBeLessThan(REAL_MAX_MS);
  });

  it('a silent link is noticed, and the client reconnects over the next link', async () => {
    const told: StatusEvent[] = [];
    const client = await start(relay.port, { onStatus: (event) => told.push(event) });
    await client.open({ protocol: 'tcp', localPort: echo.port });
    relay.blackhole();
    const silentAt = clock.monotonic();
    await eventually(() => expect(told.map(({ type }) => type)).toContain('reconnecting'), {
      timeoutMs: REAL_MAX_MS,
      intervalMs: 10,
    });
    // The last message may have arrived one ping interval before the silence.
    const { CONTROL_DEAD_AFTER_MS, CONTROL_PING_INTERVAL_MS } = WIRE_LIMITS;
    expect(clock.monotonic() - silentAt).toBeGreaterThan(CONTROL_DEAD_AFTER_MS - CONTROL_PING_INTERVAL_MS);
    relay.cut();
    relay.restore();
    await eventually(() => expect(told.map(({ type }) => type)).toContain('reconnected'), {
      timeoutMs: REAL_MAX_MS,
      intervalMs: 10,
    });
    expect(performance.now() - startedMs).toBeLessThan(REAL_MAX_MS);
  });
});
