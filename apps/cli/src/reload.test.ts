// Reading config.yml again while `tunnel start` runs, through a real edge in the same process.
import { renameSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startEdge } from './edge.fixture.ts';
import { makeTestIo, type TestIo } from './io.fixture.ts';
import { run } from './run.ts';

type Event = Record<string, unknown>;

let home: TemporaryDirectory;
let edge: Edge;
let file: string;
const cleanUps: (() => void | Promise<void>)[] = [];

beforeEach(async () => {
  home = await temporaryDirectory();
  file = join(home.path, 'tunnel.yml');
  edge = await startEdge();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await edge.stop({ drainMs: 0 });
  await home.close();
});

/** `server` and the key stand before the tunnels, which are lines of two spaces. */
const write = (tunnels: readonly string[], keys: readonly string[] = []): void =>
  writeFileSync(
    file,
    [
      `server: 127.0.0.1:${edge.addresses.control.port}`,
      'auth_token: admin',
      ...keys,
      'tunnels:',
      ...tunnels.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  );

const start = (...args: string[]): TestIo => {
  const io = makeTestIo({ home: home.path, env: { NO_COLOR: '1' } });
  const code = run(['start', '--config', file, '--json', '--no-inspect', '--drain-secs', '5', ...args], io);
  cleanUps.push(async () => {
    io.signal('SIGTERM');
    await code;
  });
  return io;
};

const events = (io: TestIo, kind: string): Event[] => io.events().filter(({ event }) => event === kind);
const readyOf = (io: TestIo, name: string): Event[] => events(io, 'ready').filter((event) => event['name'] === name);

const opened = (io: TestIo, name: string, nth = 1): Promise<Event> =>
  eventually(() => {
    const event = readyOf(io, name)[nth - 1];
    expect(event, io.out() + io.err()).toBeDefined();
    return event as Event;
  });

/** Settles with what it came to. */
const reload = async (io: TestIo): Promise<Event> => {
  const before = events(io, 'reloaded').length;
  io.signal('SIGHUP');
  return eventually(() => {
    const event = events(io, 'reloaded')[before];
    expect(event, io.out() + io.err()).toBeDefined();
    return event as Event;
  });
};

/** Says who it is. */
const web = async (says: string): Promise<number> => {
  const server: Server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume().on('end', () => response.end(says));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

const echo = async (greeting: string): Promise<number> => {
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

const visit = (event: Event, method = 'GET', agent?: Agent): Promise<string> =>
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

interface Visitor {
  readonly socket: Socket;
  readonly said: () => string;
  readonly ended: () => boolean;
}

const dial = (event: Event): Visitor => {
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

const listed = async (): Promise<Record<string, Event>> => {
  const { port } = edge.addresses.api as { port: number };
  const answer = await fetch(`http://127.0.0.1:${port}/api/tunnels`, { headers: { authorization: 'Bearer admin' } });
  const tunnels = (await answer.json()) as Event[];
  return Object.fromEntries(tunnels.map((tunnel) => [String(tunnel['name']), tunnel]));
};

describe('SIGHUP', () => {
  it('leaves what is the same alone, moves what only leads elsewhere, opens, reopens and closes the rest', async () => {
    const [a, b, c, c2, d] = [await echo('a'), await echo('b'), await echo('c'), await echo('C'), await echo('d')];
    const same = `a: { proto: tcp, local_port: ${a} } # a comment is no change`;
    write([
      same,
      `b: { proto: tcp, local_port: ${b} }`,
      `c: { proto: tcp, local_port: ${c} }`,
      `r: { proto: tcp, local_port: ${a}, health_check: { type: tcp } }`,
    ]);
    const io = start();
    const [readyA, readyB, readyC, readyR] = [
      await opened(io, 'a'),
      await opened(io, 'b'),
      await opened(io, 'c'),
      await opened(io, 'r'),
    ];
    const [visitorA, visitorB, visitorC, visitorR] = [dial(readyA), dial(readyB), dial(readyC), dial(readyR)];
    await eventually(() =>
      expect([visitorA, visitorB, visitorC, visitorR].map(({ said }) => said())).toEqual(['a', 'b', 'c', 'a']),
    );

    write([
      `d: { proto: tcp, local_port: ${d} }`,
      `c: { proto: tcp, local_port: ${c2} }`,
      `r: { proto: tcp, local_port: ${a} }`,
      'a:',
      '    local_host: "127.0.0.1"',
      `    local_port: ${a}`,
      '    proto: tcp',
    ]);
    expect(await reload(io)).toMatchObject({
      added: ['d'],
      removed: ['b'],
      changed: ['c', 'r'],
      unchanged: 1,
      restart_required: [],
    });
    expect(events(io, 'tunnel_removed')).toMatchObject([{ name: 'b', tunnel_id: readyB['tunnel_id'] }]);
    const readyD = await opened(io, 'd');
    const again = await opened(io, 'r', 2);
    // Reopened: another tunnel at the same port. The others were not even asked for again.
    expect(again['assigned_port']).toBe(readyR['assigned_port']);
    expect(again['tunnel_id']).not.toBe(readyR['tunnel_id']);
    expect([readyOf(io, 'a'), readyOf(io, 'c')].map(({ length }) => length)).toEqual([1, 1]);
    const now = await listed();
    expect(Object.keys(now).sort()).toEqual(['a', 'c', 'd', 'r']);
    expect([now['a']?.['tunnel_id'], now['c']?.['tunnel_id']]).toEqual([readyA['tunnel_id'], readyC['tunnel_id']]);
    // Whoever was there is served on, also by what is gone.
    for (const { socket } of [visitorA, visitorB, visitorC, visitorR]) socket.write(' still here');
    await eventually(() =>
      expect([visitorA, visitorB, visitorC, visitorR].map(({ said }) => said())).toEqual([
        'a still here',
        'b still here',
        'c still here',
        'a still here',
      ]),
    );
    const [newA, newC, newD] = [dial(readyA), dial(readyC), dial(readyD)];
    await eventually(() => expect([newA, newC, newD].map(({ said }) => said())).toEqual(['a', 'C', 'd']));
    const newB = dial(readyB);
    await eventually(() => expect(newB.ended()).toBe(true));
  });

  it('takes requests to the new port from the next one on, and loses none under load', async () => {
    const ports = [await web('zero'), await web('one')];
    const entry = (at: number): string => `web: { proto: http, local_port: ${ports[at % 2]} }`;
    write([entry(0)]);
    const io = start('--quiet');
    const ready = await opened(io, 'web');
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    cleanUps.push(() => agent.destroy());
    let isOver = false;
    let count = 0;
    const methods = ['GET', 'POST', 'PUT'];
    const load = Array.from({ length: 8 }, async (_, at) => {
      while (!isOver) {
        await visit(ready, methods[at % 3], at % 2 === 0 ? agent : undefined);
        count += 1;
      }
    });
    for (let at = 1; at <= 10; at += 1) {
      const before = count;
      await eventually(() => expect(count).toBeGreaterThan(before + 20));
      write([entry(at)]);
      expect(await reload(io)).toMatchObject({ added: [], removed: [], changed: ['web'], unchanged: 0 });
      const answers = await Promise.all(Array.from({ length: 12 }, () => visit(ready, 'GET', agent)));
      expect(new Set(answers)).toEqual(new Set([at % 2 === 0 ? 'zero' : 'one']));
    }
    isOver = true;
    await Promise.all(load);
    expect((await listed())['web']?.['tunnel_id']).toBe(ready['tunnel_id']);
    expect(readyOf(io, 'web')).toHaveLength(1);
    expect(events(io, 'error')).toEqual([]);
  });

  it('asks for the name again that the edge had chosen, and lets a name go from one entry to another', async () => {
    const port = await web('here');
    write([
      `chosen: { proto: http, local_port: ${port} }`,
      `one: { proto: http, local_port: ${port}, subdomain: left }`,
      `two: { proto: http, local_port: ${port}, subdomain: right }`,
    ]);
    const io = start();
    const before = await opened(io, 'chosen');
    await opened(io, 'one');
    await opened(io, 'two');
    write([
      `chosen: { proto: http, local_port: ${port}, capture: false }`,
      `one: { proto: http, local_port: ${port}, subdomain: right }`,
      `two: { proto: http, local_port: ${port}, subdomain: left }`,
    ]);
    expect(await reload(io)).toMatchObject({ changed: ['chosen', 'one', 'two'], unchanged: 0 });
    expect((await opened(io, 'chosen', 2))['public_url']).toBe(before['public_url']);
    expect((await opened(io, 'one', 2))['public_url']).toContain('//right.');
    expect((await opened(io, 'two', 2))['public_url']).toContain('//left.');
    expect(events(io, 'error')).toEqual([]);
  });

  it('with a file that is not good changes nothing, and says where', async () => {
    const port = await echo('a');
    write([`a: { proto: tcp, local_port: ${port} }`]);
    const io = start();
    const ready = await opened(io, 'a');
    for (const bad of [
      () => write(['a: { proto: tcp, local_port: 0 }', 'b: { proto: tcp, local_port: 1 }']),
      () => write([`a: { proto: tcp, local_port: ${port} }`, 'b: { proto: tcp']),
      () => write([`web: { proto: http, local_port: ${port}, host_header: "a/b" }`]),
      () => writeFileSync(file, ''),
    ]) {
      const before = events(io, 'error').length;
      bad();
      io.signal('SIGHUP');
      await eventually(() => expect(events(io, 'error')).toHaveLength(before + 1));
    }
    expect(events(io, 'error')[0]).toMatchObject({ code: 'CONFIG_WRONG_VALUE', fatal: false });
    expect(String(events(io, 'error')[0]?.['message'])).toContain('tunnel.yml:4');
    expect([events(io, 'reloaded'), events(io, 'tunnel_removed')]).toEqual([[], []]);
    expect(Object.keys(await listed())).toEqual(['a']);
    write([`a: { proto: tcp, local_port: ${port} }`]);
    expect(await reload(io)).toMatchObject({ added: [], removed: [], changed: [], unchanged: 1 });
    expect((await listed())['a']?.['tunnel_id']).toBe(ready['tunnel_id']);
  });

  it('names the keys that only a restart applies, until they are as they were', async () => {
    const entry = `a: { proto: tcp, local_port: ${await echo('a')} }`;
    write([entry]);
    const io = start();
    await opened(io, 'a');
    write([entry], ['insecure: true', 'watch: false', 'ca_file: x.pem']);
    expect(await reload(io)).toMatchObject({ unchanged: 1, restart_required: ['ca_file', 'insecure'] });
    expect(await reload(io)).toMatchObject({ unchanged: 1, restart_required: ['ca_file', 'insecure'] });
    write([entry]);
    expect(await reload(io)).toMatchObject({ unchanged: 1, restart_required: [] });
  });

  it('looks at the named entries alone, and the client stays when the last of them is gone', async () => {
    const port = await echo('a');
    write([`a: { proto: tcp, local_port: ${port} }`, `b: { proto: tcp, local_port: ${port} }`]);
    const io = start('a');
    await opened(io, 'a');
    write([`b: { proto: tcp, local_port: ${port} }`]);
    expect(await reload(io)).toMatchObject({ added: [], removed: ['a'], changed: [], unchanged: 0 });
    expect(await listed()).toEqual({});
    write([`a: { proto: tcp, local_port: ${port} }`]);
    expect(await reload(io)).toMatchObject({ added: ['a'], removed: [] });
    await opened(io, 'a', 2);
  });

  it('asks again for what was refused, and a refusal does not end the client', async () => {
    const port = await web('here');
    write([`a: { proto: http, local_port: ${port}, subdomain: mine }`]);
    const first = start();
    await opened(first, 'a');
    write([`b: { proto: http, local_port: ${port}, subdomain: yours }`]);
    const io = start();
    await opened(io, 'b');
    write([`b: { proto: http, local_port: ${port}, subdomain: mine }`]);
    expect(await reload(io)).toMatchObject({ changed: ['b'] });
    await eventually(() => expect(events(io, 'error')).toMatchObject([{ code: 'TUNNEL_SUBDOMAIN_IN_USE', name: 'b' }]));
    expect(Object.keys(await listed())).toEqual(['a']);
    await reload(first);
    await eventually(async () => expect(Object.keys(await listed())).toEqual(['b']));
    expect(await reload(io)).toMatchObject({ added: ['b'], changed: [] });
  });

  it('ten in a row are carried out one after the other, and the last one counts', async () => {
    const port = await echo('a');
    write(['first: { proto: tcp, local_port: 1 }']);
    const io = start();
    await opened(io, 'first');
    for (let at = 0; at < 10; at += 1) {
      write([`t${at}: { proto: tcp, local_port: ${port} }`, `x${at % 2}: { proto: tcp, local_port: ${port} }`]);
      io.signal('SIGHUP');
    }
    await eventually(async () => expect(Object.keys(await listed()).sort()).toEqual(['t9', 'x1']));
    expect(events(io, 'error')).toEqual([]);
  });
});

describe('peers', () => {
  const SECRET = 'a secret of sixteen bytes and more';
  const publish = (name: string, port: number): string =>
    `${name}: { proto: p2p, p2p_publish: office, p2p_secret: ${SECRET}, local_port: ${port}, p2p_direct: false }`;
  const connect = (name: string, port: number): string =>
    `${name}: { proto: p2p, p2p_connect: office, p2p_secret: ${SECRET}, listen_port: ${port}, p2p_direct: false }`;
  const portOf = (ready: Event): number => Number(String(ready['listen']).split(':').at(-1));
  const reach = (port: number): Visitor => dial({ assigned_port: port });
  const freePort = async (): Promise<number> => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
  };

  it('stay when they are the same, begin again when they changed, and finish what runs when they are gone', async () => {
    const [first, second] = [await echo('first'), await echo('second')];
    write([publish('office', first)]);
    const publisher = start();
    const published = await opened(publisher, 'office');
    const here = await freePort();
    write([connect('desk', here)]);
    const io = start();
    expect(portOf(await opened(io, 'desk'))).toBe(here);
    const one = reach(here);
    await eventually(() => expect(one.said()).toBe('first'));
    expect(await reload(io)).toMatchObject({ added: [], removed: [], changed: [], unchanged: 1 });
    one.socket.write('!');
    await eventually(() => expect(one.said()).toBe('first!'));

    // The publisher leads elsewhere, and stays the same tunnel: nobody has to join again.
    write([publish('office', second)]);
    expect(await reload(publisher)).toMatchObject({ changed: ['office'] });
    expect((await listed())['office']?.['tunnel_id']).toBe(published['tunnel_id']);
    const two = reach(here);
    await eventually(() => expect(two.said()).toBe('second'));

    const there = await freePort();
    write([connect('desk', there)]);
    expect(await reload(io)).toMatchObject({ changed: ['desk'], unchanged: 0 });
    expect(portOf(await opened(io, 'desk', 2))).toBe(there);
    const [three, gone] = [reach(there), reach(here)];
    await eventually(() => expect([three.said(), gone.ended(), gone.said()]).toEqual(['second', true, '']));
    for (const { socket } of [one, two, three]) socket.write('?');
    await eventually(() =>
      expect([one, two, three].map(({ said }) => said())).toEqual(['first!?', 'second?', 'second?']),
    );

    write(['other: { proto: tcp, local_port: 1 }']);
    expect(await reload(io)).toMatchObject({ added: ['other'], removed: ['desk'] });
    expect(events(io, 'tunnel_removed')).toMatchObject([{ name: 'desk', tunnel_id: null }]);
    three.socket.write('.');
    await eventually(() => expect(three.said()).toBe('second?.'));
    const late = reach(there);
    await eventually(() => expect(late.ended()).toBe(true));
    expect([events(io, 'error'), events(publisher, 'error')]).toEqual([[], []]);
  });
});

describe('other commands', () => {
  it('do not end at SIGHUP', async () => {
    const io = makeTestIo({ home: home.path });
    const server = `127.0.0.1:${edge.addresses.control.port}`;
    const code = run(['tcp', '1', '--server', server, '--token', 'admin', '--json'], io);
    await opened(io, 'tcp-1');
    io.signal('SIGHUP');
    expect(Object.keys(await listed())).toEqual(['tcp-1']);
    io.signal('SIGTERM');
    expect(await code).toBe(0);
    expect([events(io, 'error'), events(io, 'reloaded')]).toEqual([[], []]);
  });
});

describe('watching', () => {
  const entries = (names: readonly string[]): string[] => names.map((name) => `${name}: { proto: tcp, local_port: 1 }`);

  it('reloads by itself, also a file that takes the place of the other; the same content is no change', async () => {
    write(entries(['a']));
    const io = start('--watch');
    await opened(io, 'a');
    write(entries(['a', 'b']));
    await opened(io, 'b');
    const aside = join(home.path, 'aside');
    const real = file;
    file = aside;
    write(entries(['a', 'c']));
    renameSync(aside, real);
    file = real;
    await opened(io, 'c');
    await eventually(() => expect(events(io, 'reloaded')).toHaveLength(2));
    write(entries(['a', 'c']));
    writeFileSync(join(home.path, 'another-file'), 'x');
    write(entries(['a', 'c', 'd']));
    await opened(io, 'd');
    expect(events(io, 'reloaded')).toHaveLength(3);
  });

  it('begins and ends with the key `watch` of the file, and says once what is wrong with it', async () => {
    write(entries(['a']));
    const io = start();
    await opened(io, 'a');
    write(entries(['a']), ['watch: true']);
    await reload(io);
    write(['a: { proto: nothing }'], ['watch: true']);
    await eventually(() => expect(events(io, 'error')).toHaveLength(1));
    write(entries(['a', 'b']), ['watch: false']);
    await opened(io, 'b');
    write(entries(['a', 'b', 'c']), ['watch: false']);
    expect(await reload(io)).toMatchObject({ added: ['c'] });
    expect([events(io, 'reloaded').length, events(io, 'error').length]).toEqual([3, 1]);
  });
});
