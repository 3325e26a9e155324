// Reloading config.yml on SIGHUP, through a real edge in the same process.
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { dirname, join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import {
  configFile,
  dial,
  echo,
  events,
  h2c,
  listed,
  opened,
  portBeside,
  readyOf,
  reload,
  start,
  useEdgeAndHome,
  visit,
  web,
  write,
} from './reload.fixture.ts';

useEdgeAndHome();

describe('a reload with SIGHUP', () => {
  it('keeps unchanged tunnels, moves changed targets in place, opens new tunnels, reopens changed ones and closes removed ones', async () => {
    const a = await echo('a');
    const b = await echo('b');
    const c = await echo('c');
    const c2 = await echo('C');
    const d = await echo('d');
    const same = `a: { proto: tcp, local_port: ${a} } # a comment is no change`;
    write([
      same,
      `b: { proto: tcp, local_port: ${b} }`,
      `c: { proto: tcp, local_port: ${c} }`,
      `r: { proto: tcp, local_port: ${a}, health_check: { type: tcp } }`,
    ]);
    const io = start();
    const readyA = await opened(io, 'a');
    const readyB = await opened(io, 'b');
    const readyC = await opened(io, 'c');
    const readyR = await opened(io, 'r');
    const visitorA = dial(readyA);
    const visitorB = dial(readyB);
    const visitorC = dial(readyC);
    const visitorR = dial(readyR);
    await eventually(() =>
      expect([visitorA, visitorB, visitorC, visitorR].map(({ said }) => said())).toEqual(['a', 'b', 'c', 'a']),
    );

    write([
      `d: { proto: tcp, local_port: ${d}, remote_port: ${portBeside(readyA, readyB, readyC, readyR)} }`,
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
    // The changed tunnel was reopened: a new tunnel id on the same port. The tunnels a and c were not reopened.
    expect(again['assigned_port']).toBe(readyR['assigned_port']);
    expect(again['tunnel_id']).not.toBe(readyR['tunnel_id']);
    expect([readyOf(io, 'a'), readyOf(io, 'c')].map(({ length }) => length)).toEqual([1, 1]);
    const now = await listed();
    expect(Object.keys(now).sort()).toEqual(['a', 'c', 'd', 'r']);
    expect([now['a']?.['tunnel_id'], now['c']?.['tunnel_id']]).toEqual([readyA['tunnel_id'], readyC['tunnel_id']]);
    // Open connections continue, even those of the removed tunnel.
    for (const { socket } of [visitorA, visitorB, visitorC, visitorR]) socket.write(' still here');
    await eventually(() =>
      expect([visitorA, visitorB, visitorC, visitorR].map(({ said }) => said())).toEqual([
        'a still here',
        'b still here',
        'c still here',
        'a still here',
      ]),
    );
    const newA = dial(readyA);
    const newC = dial(readyC);
    const newD = dial(readyD);
    await eventually(() => expect([newA, newC, newD].map(({ said }) => said())).toEqual(['a', 'C', 'd']));
    const newB = dial(readyB);
    await eventually(() => expect(newB.ended()).toBe(true));
  });

  it.each([
    ['', ''],
    [' in a group', ', group: g, group_key: k, health_check: { type: tcp, interval_secs: 0.1 }'],
  ])('sends requests%s to the new port at once, and loses no request under load', async (_where, more) => {
    const ports = [await web('zero'), await web('one')];
    const entry = (at: number): string => `web: { proto: http, local_port: ${ports[at % 2]}${more} }`;
    write([entry(0)]);
    const io = start('--quiet');
    const ready = await opened(io, 'web');
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
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
    agent.destroy();
    expect((await listed())['web']?.['tunnel_id']).toBe(ready['tunnel_id']);
    expect(readyOf(io, 'web')).toHaveLength(1);
    expect(events(io, 'error')).toEqual([]);
  });

  it.each<[string, (port: number) => string, (says: string) => Promise<number>]>([
    ['of a service that speaks HTTP/2', (port) => `{ proto: http, local_port: ${port}, local_protocol: h2c }`, h2c],
    ['of a member of a group', (port) => `{ proto: http, local_port: ${port}, group: g, group_key: k }`, web],
    ['that is probed', (port) => `{ proto: http, local_port: ${port}, health_check: { type: tcp } }`, web],
  ])('changes the target %s without reopening the tunnel', async (_what, entry, serve) => {
    const first = await serve('first');
    const second = await serve('second');
    write([`web: ${entry(first)}`]);
    const io = start();
    const ready = await opened(io, 'web');
    expect(await Promise.all([visit(ready), visit(ready, 'POST'), visit(ready)])).toEqual(Array(3).fill('first'));
    write([`web: ${entry(second)}`]);
    expect(await reload(io)).toMatchObject({ changed: ['web'] });
    expect(await Promise.all([visit(ready), visit(ready, 'POST'), visit(ready)])).toEqual(Array(3).fill('second'));
    expect((await listed())['web']?.['tunnel_id']).toBe(ready['tunnel_id']);
    expect(events(io, 'error')).toEqual([]);
  });

  it('changes the target of a tunnel from a port to a folder, to a Unix socket and back', async () => {
    const folder = dirname(configFile());
    writeFileSync(join(folder, 'index.html'), 'a page');
    const socket = join(folder, 'app.sock');
    const [port] = [await web('a port'), await web('a socket', socket)];
    const targets = {
      'a port': `local_port: ${port}`,
      'a page': 'files: { dir: . }',
      'a socket': `local_socket: ${socket}`,
    };
    const entry = (says: keyof typeof targets): string[] => [`web: { proto: http, ${targets[says]} }`];
    write(entry('a port'));
    const io = start();
    const ready = await opened(io, 'web');
    expect(await visit(ready)).toBe('a port');
    for (const says of ['a page', 'a socket', 'a page', 'a port'] as const) {
      write(entry(says));
      expect(await reload(io)).toMatchObject({ changed: ['web'] });
      expect(await visit(ready)).toBe(says);
    }
    expect((await listed())['web']?.['tunnel_id']).toBe(ready['tunnel_id']);
  });

  it('keeps the name chosen by the edge, and can swap subdomains between two entries', async () => {
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

  it('changes no tunnel if the file is invalid, and reports the line', async () => {
    const port = await echo('a');
    write([`a: { proto: tcp, local_port: ${port} }`]);
    const io = start();
    const ready = await opened(io, 'a');
    for (const bad of [
      () => write(['a: { proto: tcp, local_port: 0 }', 'b: { proto: tcp, local_port: 1 }']),
      () => write([`a: { proto: tcp, local_port: ${port} }`, 'b: { proto: tcp']),
      () => write([`web: { proto: http, local_port: ${port}, host_header: "a/b" }`]),
      () => writeFileSync(configFile(), ''),
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

  it('names changed keys that need a restart, until they are reverted', async () => {
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

  it('considers only the entries named on the command line, and keeps the client running when the last is removed', async () => {
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

  it('tries a refused tunnel again, and a refusal does not end the client', async () => {
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

  it('repeated ten times in a row ends with the state of the last file', async () => {
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
