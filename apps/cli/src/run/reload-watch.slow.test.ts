// Reloading config.yml: p2p tunnels, watching the file, and commands without a config file.
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eventually, freePort } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import {
  configFile,
  controlAddress,
  dial,
  type Event,
  echo,
  events,
  listed,
  opened,
  reload,
  start,
  useEdgeAndHome,
  type Visitor,
  write,
} from './reload.fixture.ts';

useEdgeAndHome();

import { run } from '../all-commands.ts';

describe('p2p tunnels on reload', () => {
  const SECRET = 'a secret of sixteen bytes and more';
  const publish = (name: string, port: number): string =>
    `${name}: { proto: p2p, p2p_publish: office, p2p_secret: ${SECRET}, local_port: ${port}, p2p_direct: false }`;
  const connect = (name: string, port: number): string =>
    `${name}: { proto: p2p, p2p_connect: office, p2p_secret: ${SECRET}, listen_port: ${port}, p2p_direct: false }`;
  const portOf = (ready: Event): number => Number(String(ready['listen']).split(':').at(-1));
  const reach = (port: number): Visitor => dial({ assigned_port: port });

  it('stay if unchanged, restart if changed, and let open connections finish if removed', async () => {
    const first = await echo('first');
    const second = await echo('second');
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

    // The publisher has a new target but stays the same tunnel, so no peer has to join again.
    write([publish('office', second)]);
    expect(await reload(publisher)).toMatchObject({ changed: ['office'] });
    expect((await listed())['office']?.['tunnel_id']).toBe(published['tunnel_id']);
    const two = reach(here);
    await eventually(() => expect(two.said()).toBe('second'));

    const there = await freePort();
    write([connect('desk', there)]);
    expect(await reload(io)).toMatchObject({ changed: ['desk'], unchanged: 0 });
    expect(portOf(await opened(io, 'desk', 2))).toBe(there);
    const three = reach(there);
    const gone = reach(here);
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

describe('a p2p entry that is removed from the file before it has opened', () => {
  it('is not opened afterwards', async () => {
    const stays = 'stays: { proto: tcp, local_port: 1 }';
    const short = "short: { proto: p2p, p2p_publish: short, p2p_secret: '0123456789abcdef', local_port: 1 }";
    write([stays]);
    const io = start();
    await opened(io, 'stays');
    // The modules for p2p are loaded with the first p2p entry.
    write([stays, short]);
    io.signal('SIGHUP');
    // All within a single turn of the event loop, so that nothing can have been loaded when the file changes again.
    for (let turn = 0; turn < 1000 && events(io, 'reloaded').length === 0; turn += 1) await Promise.resolve();
    expect(events(io, 'reloaded')).toMatchObject([{ added: ['short'] }]);
    write([stays]);
    expect(await reload(io)).toMatchObject({ removed: ['short'] });
    // An entry of the same kind: once it is open, the removed entry would have opened long before.
    write([stays, short.replaceAll('short', 'late')]);
    await reload(io);
    await opened(io, 'late');
    await eventually(async () => expect(Object.keys(await listed()).sort()).toEqual(['late', 'stays']));
  });
});

describe('tunnels added at run time', () => {
  const entry = (name: string, port: number): string => `${name}: { proto: tcp, local_port: ${port} }`;

  it('survive a reload, belong to the file once it names them, and are removed with their entry', async () => {
    const port = await echo('here');
    write([entry('first', port)]);
    const io = start();
    await opened(io, 'first');
    const adding = makeTestIo({ home: dirname(configFile()) });
    expect(await run(['add', 'tcp', String(port), '--name', 'late'], adding), adding.err()).toBe(0);
    const late = await opened(io, 'late');
    expect(await reload(io)).toMatchObject({ added: [], removed: [], changed: [], unchanged: 1 });
    write([entry('first', port), entry('late', port)]);
    expect(await reload(io)).toMatchObject({ added: [], changed: [], unchanged: 2 });
    expect((await listed())['late']?.['tunnel_id']).toBe(late['tunnel_id']);
    write([entry('first', port)]);
    expect(await reload(io)).toMatchObject({ removed: ['late'], unchanged: 1 });
  });
});

describe('commands without a config file', () => {
  it('keep running on SIGHUP', async () => {
    const io = makeTestIo({ home: dirname(configFile()) });
    const code = run(['tcp', '1', '--server', controlAddress(), '--token', 'admin', '--json'], io);
    await opened(io, 'tcp-1');
    io.signal('SIGHUP');
    expect(Object.keys(await listed())).toEqual(['tcp-1']);
    io.signal('SIGTERM');
    expect(await code).toBe(0);
    expect([events(io, 'error'), events(io, 'reloaded')]).toEqual([[], []]);
  });
});

describe('watching the config file', () => {
  const entries = (names: readonly string[]): string[] => names.map((name) => `${name}: { proto: tcp, local_port: 1 }`);

  it('reloads on a change or replacement of the file, and ignores identical content', async () => {
    write(entries(['a']));
    const io = start('--watch');
    await opened(io, 'a');
    write(entries(['a', 'b']));
    await opened(io, 'b');
    const aside = join(dirname(configFile()), 'aside');
    write(entries(['a', 'c']), [], aside);
    renameSync(aside, configFile());
    await opened(io, 'c');
    await eventually(() => expect(events(io, 'reloaded')).toHaveLength(2));
    write(entries(['a', 'c']));
    writeFileSync(join(dirname(configFile()), 'another-file'), 'x');
    write(entries(['a', 'c', 'd']));
    await opened(io, 'd');
    expect(events(io, 'reloaded')).toHaveLength(3);
  });

  it('follows a symbolic link, its target, and a new target', async () => {
    const [one, two] = ['one', 'two'].map((name) => join(dirname(configFile()), name, 'real.yml')) as [string, string];
    for (const path of [one, two]) mkdirSync(dirname(path));
    write(entries(['a']), [], one);
    symlinkSync(one, configFile());
    const io = start('--watch');
    await opened(io, 'a');
    write(entries(['a', 'b']), [], one);
    await opened(io, 'b');
    write(entries(['a', 'b', 'c']), [], two);
    const aside = join(dirname(configFile()), 'aside');
    symlinkSync(two, aside);
    renameSync(aside, configFile());
    await opened(io, 'c');
    write(entries(['a', 'b', 'c', 'd']), [], two);
    await opened(io, 'd');
  });

  it('starts and stops with the key `watch`, and reports an invalid file once', async () => {
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

  it('reloads when an invalid policy file named by config.yml is fixed', async () => {
    const rules = join(dirname(configFile()), 'rules.yml');
    const guarded = (policy: string): string[] => [`a: { proto: http, local_port: 1, policy: ${policy} }`];
    write(guarded('[{ deny: 403 }]'));
    const io = start('--watch');
    await opened(io, 'a');
    writeFileSync(rules, '- dny: true\n');
    write(guarded('rules.yml'));
    await eventually(() => expect(events(io, 'error')).toHaveLength(1));
    writeFileSync(rules, '- deny: 404\n');
    await eventually(() => expect(events(io, 'reloaded')).toMatchObject([{ changed: ['a'] }]));
  });
});
