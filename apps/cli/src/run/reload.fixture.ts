// `tunnel start` with a config.yml that changes, a real edge in the same process, local services that answer with their name, and
// visitors.
import { writeFileSync } from 'node:fs';
import { type Agent, createServer, request as httpRequest, type Server } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import {
  claimPortBlock,
  eventually,
  type PortBlock,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';
import { startEdge } from './edge.fixture.ts';

export type Event = Record<string, unknown>;

let home: TemporaryDirectory;
let edge: Edge;
let ports: PortBlock;
let file: string;
const cleanUps: (() => void | Promise<void>)[] = [];

/**
 * Sets up edge and home for each test of the calling file. An import alone is not enough, because test files in a worker share their
 * modules.
 */
export const useEdgeAndHome = (): void => {
  beforeEach(async () => {
    home = await temporaryDirectory();
    file = join(home.path, 'tunnel.yml');
    // A separate block of ports: otherwise an edge of another process could take a port between two uses.
    ports = await claimPortBlock();
    edge = await startEdge({ limits: { tcp_port_range: [ports.from, ports.to] } });
  });
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
    await edge.stop({ drainMs: 0 });
    await ports.close();
    await home.close();
  });
};

/** The path of the test's config file. */
export const configFile = (): string => file;

/** Returns a public port that none of these tunnels has. Without a fixed port the edge could assign a port that was just released. */
export const portBeside = (...tunnels: readonly Event[]): number => {
  const taken = tunnels.map((tunnel) => tunnel['assigned_port']);
  return (
    Array.from({ length: taken.length + 1 }, (_, at) => ports.from + at).find((port) => !taken.includes(port)) ?? 0
  );
};

export const controlAddress = (): string => `127.0.0.1:${edge.addresses.control.port}`;

/** Writes config.yml: server address, API key and `keys`, then the tunnels, each indented by two spaces. */
export const write = (tunnels: readonly string[], keys: readonly string[] = [], to = file): void =>
  writeFileSync(
    to,
    [
      `server: ${controlAddress()}`,
      'auth_token: admin',
      ...keys,
      'tunnels:',
      ...tunnels.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  );

export const start = (...args: string[]): TestIo => {
  const io = makeTestIo({ home: home.path, env: { NO_COLOR: '1' } });
  const code = run(['start', '--config', file, '--json', '--no-inspect', '--drain-secs', '5', ...args], io);
  cleanUps.push(async () => {
    io.signal('SIGTERM');
    await code;
  });
  return io;
};

export const events = (io: TestIo, kind: string): Event[] => io.events().filter(({ event }) => event === kind);
export const readyOf = (io: TestIo, name: string): Event[] =>
  events(io, 'ready').filter((event) => event['name'] === name);

export const opened = (io: TestIo, name: string, nth = 1): Promise<Event> =>
  eventually(() => {
    const event = readyOf(io, name)[nth - 1];
    expect(event, io.out() + io.err()).toBeDefined();
    return event as Event;
  });

/** Reloads the file with SIGHUP, and resolves with the reloaded event. */
export const reload = async (io: TestIo): Promise<Event> => {
  const before = events(io, 'reloaded').length;
  io.signal('SIGHUP');
  return eventually(() => {
    const event = events(io, 'reloaded')[before];
    expect(event, io.out() + io.err()).toBeDefined();
    return event as Event;
  });
};

/** Starts a web service with the text `says` as the response to every request. Returns the port. */
export const web = async (says: string, socket?: string): Promise<number> => {
  const server: Server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume().on('end', () => response.end(says));
  });
  await new Promise<void>((resolve) => {
    if (socket === undefined) server.listen(0, '127.0.0.1', resolve);
    else server.listen(socket, resolve);
  });
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

export const h2c = async (says: string): Promise<number> => {
  const sessions = new Set<ServerHttp2Session>();
  const server = createHttp2Server((request, response) => {
    request.resume().on('end', () => response.end(says));
  });
  server.on('session', (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

export const echo = async (greeting: string): Promise<number> => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(greeting);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

export const visit = (event: Event, method = 'GET', agent?: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(String(event['public_url']));
    const options = { host: '127.0.0.1', port, method, headers: { host: hostname }, agent };
    const request = httpRequest(options, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => {
        text += part.toString();
      });
      response.on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))));
    });
    request.on('error', reject);
    request.end();
  });

export interface Visitor {
  readonly socket: Socket;
  readonly said: () => string;
  readonly ended: () => boolean;
}

export const dial = (event: Event): Visitor => {
  let text = '';
  let isEnded = false;
  const socket = connectTcp(Number(event['assigned_port']), '127.0.0.1');
  socket.on('data', (part: Buffer) => {
    text += part.toString();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    isEnded = true;
  });
  cleanUps.push(() => void socket.destroy());
  return { socket, said: () => text, ended: () => isEnded };
};

export const listed = async (): Promise<Record<string, Event>> => {
  const { port } = edge.addresses.api as { port: number };
  const answer = await fetch(`http://127.0.0.1:${port}/api/tunnels`, { headers: { authorization: 'Bearer admin' } });
  const tunnels = (await answer.json()) as Event[];
  return Object.fromEntries(tunnels.map((tunnel) => [String(tunnel['name']), tunnel]));
};
