// Tests of a stop by signal while HTTP visitors are connected: running responses finish, and idle connections are closed at once.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { WebSocket } from 'ws';
import {
  askHttp,
  echoSockets,
  type OpenTunnel,
  openHttp,
  readUntil,
  sendRaw,
  startWeb,
} from '../http-tunnels.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { fateOf } from '../visitor.fixture.ts';

interface UnderWay extends OpenTunnel {
  readonly stack: Stack;
  /** Connection of a visitor that has received the start of a response. */
  readonly visitor: Socket;
  /** Idle keep-alive connection of a second visitor. */
  readonly idle: Socket;
  /** Completes the response. */
  finish(): void;
}

const startSlowAnswer = async (harness: Harness): Promise<UnderWay> => {
  let slow: ServerResponse | undefined;
  const web = harness.use(
    await startWeb((request, response) => {
      if (request.url !== '/slow') return void response.end('quick');
      slow = response;
      response.writeHead(200, { 'content-length': '11' });
      response.write('begun ');
    }),
  );
  const stack = await harness.stack();
  const open = await openHttp(harness, stack, web.port);
  const idle = await sendRaw(open.endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
  expect(await readUntil(idle, /quick/)).not.toMatch(/connection: close/i);
  const visitor = await sendRaw(open.endpoint, 'GET /slow HTTP/1.1\r\nHost: {host}\r\n\r\n');
  await readUntil(visitor, /begun /);
  return { ...open, stack, visitor, idle, finish: () => void slow?.end('ended') };
};

describe.concurrent('SIGTERM to the edge', () => {
  it('lets a response finish, closes idle connections at once, refuses new connections, and ends the edge with 0', async ({
    harness,
  }) => {
    const { stack, endpoint, visitor, idle, finish } = await startSlowAnswer(harness);
    const idleEnds = once(idle, 'end');
    stack.program.signal('SIGTERM');
    await idleEnds;
    await eventually(async () => expect(await fateOf(endpoint.port)).toBe('ECONNREFUSED'));
    expect(stack.program.exit).toBeNull();
    const rest = readUntil(visitor, /ended/);
    const visitorEnds = once(visitor, 'end');
    finish();
    expect(await rest).toBe('ended');
    await visitorEnds;
    visitor.end();
    idle.end();
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
  });

  it('adds Connection: close to responses that had not started', async ({ harness }) => {
    let late: ServerResponse | undefined;
    const web = harness.use(
      await startWeb((_, response) => {
        late = response;
      }),
    );
    const stack = await harness.stack();
    const { endpoint } = await openHttp(harness, stack, web.port);
    const visitor = await sendRaw(endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
    await eventually(() => expect(late).toBeDefined());
    stack.program.signal('SIGTERM');
    await eventually(async () => expect(await fateOf(endpoint.port)).toBe('ECONNREFUSED'));
    const heard = readUntil(visitor, /late but whole/);
    late?.end('late but whole');
    expect(await heard).toMatch(/^HTTP\/1\.1 200 OK\r\n(.*\r\n)*connection: close\r\n/i);
    visitor.end();
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
  });

  it('does not wait for visitors with idle keep-alive connections', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('quick')));
    const stack = await harness.stack();
    const { endpoint } = await openHttp(harness, stack, web.port);
    const idle = await sendRaw(endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
    await readUntil(idle, /quick/);
    const since = performance.now();
    stack.program.signal('SIGTERM');
    // The visitor neither sends a request nor closes its connection, and the edge must not wait for either.
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(25_000);
    idle.destroy();
  });
});

describe.concurrent('SIGTERM to the client', () => {
  it('ends the client within 8 s if no request is in progress, even right after a request', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('quick')));
    const stack = await harness.stack();
    // The client runs as an executable, to prove that no open handle keeps the process alive.
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port, [], { programs: true });
    const kept = await sendRaw(endpoint, 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n');
    await readUntil(kept, /quick/);
    const since = performance.now();
    tunnel.signal('SIGTERM');
    expect(await tunnel.exitCode()).toBe(0);
    expect(performance.now() - since).toBeLessThan(8000);
    // The visitor connection ends at the edge, so it survives the client. The name is free again.
    kept.write(`GET / HTTP/1.1\r\nHost: ${endpoint.host}\r\n\r\n`);
    expect(await readUntil(kept, /<\/html>/)).toMatch(/^HTTP\/1\.1 404/);
    kept.destroy();
  });

  it('lets a response finish, while new visitors get a 404', async ({ harness }) => {
    const { tunnel, endpoint, visitor, idle, finish } = await startSlowAnswer(harness);
    tunnel.signal('SIGTERM');
    await eventually(async () => expect((await askHttp(endpoint)).status).toBe(404));
    expect(tunnel.exit).toBeNull();
    const rest = readUntil(visitor, /ended/);
    finish();
    expect(await rest).toBe('ended');
    expect(await tunnel.exitCode()).toBe(0);
    for (const socket of [visitor, idle]) socket.destroy();
  });

  it('lets a WebSocket continue for --drain-secs', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end()));
    echoSockets(web);
    const stack = await harness.stack();
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port, ['--drain-secs', '2']);
    const socket = new WebSocket(`ws://127.0.0.1:${endpoint.port}/`, { headers: { host: endpoint.host } });
    await once(socket, 'open');
    const closed = once(socket, 'close');
    tunnel.signal('SIGTERM');
    await eventually(async () => expect((await askHttp(endpoint)).status).toBe(404));
    socket.send('still there');
    expect(String((await once(socket, 'message'))[0])).toBe('still there');
    expect((await closed)[0]).toBe(1006);
    expect(await tunnel.exitCode()).toBe(0);
  });
});
