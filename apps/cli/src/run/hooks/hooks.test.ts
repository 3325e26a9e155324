// The companions of a run (systemd notification, log file, QR code, browser), from the command line through a real edge in the same
// process.
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo, type TestIo, type TestIoOptions } from '../../io/io.fixture.ts';
import { startEdge } from '../edge.fixture.ts';
import { Runs, type Started } from '../runs.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let service: Server;
let port: string;
let flags: string[];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  service = createServer((_, response) => response.end('here'));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  port = String((service.address() as AddressInfo).port);
  edge = await startEdge();
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--drain-secs', '0'];
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await new Promise((resolve) => service.close(resolve));
  await home.close();
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): Started => {
  const io = makeTestIo({ home: home.path, env: { NO_COLOR: '1' }, ...options });
  return runs.start([...args, ...flags], io);
};

const end = ({ io, code }: { io: TestIo; code: Promise<number> }): Promise<number> => {
  io.signal('SIGTERM');
  return code;
};

/** Puts a program with this name first on the PATH. The program records the arguments of each call. */
const recordingProgram = (name: string, exitCode = 0) => {
  const folder = join(home.path, 'bin');
  const file = join(folder, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho "$*" >> '${file}.called'\nexit ${exitCode}\n`);
  chmodSync(file, 0o755);
  const calls = (): string[] =>
    existsSync(`${file}.called`) ? readFileSync(`${file}.called`, 'utf8').trim().split('\n') : [];
  return { calls, PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
};

/** Returns a folder in which the program is a symbolic link to itself. Node.js then throws an exception in place of an error event. */
const loopOf = (name: string): string => {
  symlinkSync(name, join(home.path, name));
  return home.path;
};

const config = (text: string): string => {
  const file = join(home.path, '.tunnel', 'config.yml');
  mkdirSync(join(home.path, '.tunnel'), { recursive: true });
  writeFileSync(file, text);
  return file;
};

describe('systemd notification', () => {
  const environment = (): { env: Record<string, string>; calls: () => string[] } => {
    const { calls, PATH } = recordingProgram('systemd-notify');
    return { env: { NO_COLOR: '1', PATH, NOTIFY_SOCKET: '/run/notify' }, calls };
  };

  it('is sent when every tunnel is open, around a reload, and at the end', async () => {
    const { env, calls } = environment();
    config(`tunnels:\n  web: { proto: http, local_port: ${port} }\n`);
    const started = start(['start'], { env });
    await eventually(() => expect(calls()).toEqual(['READY=1']));
    config(`tunnels:\n  web: { proto: http, local_port: ${port} }\n  two: { proto: tcp, local_port: ${port} }\n`);
    started.io.signal('SIGHUP');
    await eventually(() => expect(calls()).toHaveLength(3));
    expect(calls()).toEqual(['READY=1', expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/), 'READY=1']);
    config('tunnels: {\n');
    started.io.signal('SIGHUP');
    await eventually(() => expect(calls().slice(3)).toEqual([expect.stringMatching(/^RELOADING=1/), 'READY=1']));
    expect(await end(started)).toBe(0);
    expect(calls().slice(5)).toEqual(['STOPPING=1']);
    expect(started.io.env).not.toHaveProperty('NOTIFY_SOCKET');
  });

  it('does not say READY while a tunnel is refused', async () => {
    const { env, calls } = environment();
    const entry = `{ proto: http, local_port: ${port}, subdomain: taken }`;
    const first = start(['http', port, '--subdomain', 'taken']);
    await eventually(() => expect(first.io.out()).toContain('taken'));
    config(`tunnels:\n  web: ${entry}\n  two: { proto: tcp, local_port: ${port} }\n`);
    const started = start(['start'], { env });
    await eventually(() => expect(started.io.err()).toContain('web: '));
    await eventually(() => expect(started.io.out()).toContain('two: '));
    expect(await end(started)).toBe(0);
    expect(calls()).toEqual(['STOPPING=1']);
  });

  it('sends watchdog pings while systemd asks for them', async () => {
    const { env, calls } = environment();
    start(['http', port], { env: { ...env, WATCHDOG_USEC: '400000' } });
    await eventually(() => {
      expect(calls().filter((call) => call === 'WATCHDOG=1').length).toBeGreaterThan(1);
      // On a busy machine the client may need longer to become ready than to send the first watchdog ping.
      expect(calls()).toContain('READY=1');
    });
  });
});

describe('the log file', () => {
  const linesOf = (file: string): Record<string, unknown>[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('contains the events of --json, whatever the terminal shows', async () => {
    const started = start(['http', port, '--log-file', 'tunnel.log']);
    await eventually(() => expect(started.io.out()).toContain('http-'));
    await end(started);
    const events = linesOf(join(home.path, 'tunnel.log'));
    expect(events.map(({ event }) => event)).toEqual(['ready', 'closed']);
    expect(events[0]).toMatchObject({ protocol: 'http', local: `127.0.0.1:${port}`, public_url: expect.any(String) });
  });

  it('can be set in config.yml, relative to its folder', async () => {
    config(`log_file: tunnel.log\ntunnels:\n  web: { proto: http, local_port: ${port} }\n`);
    const started = start(['start', '--json']);
    await eventually(() => expect(started.io.events().map(({ event }) => event)).toContain('ready'));
    await end(started);
    const untimed = (events: Record<string, unknown>[]): object[] => events.map(({ at: _, ...event }) => event);
    expect(untimed(linesOf(join(home.path, '.tunnel', 'tunnel.log')))).toEqual(untimed(started.io.events()));
  });

  it('is reported once if it cannot be written, and the client keeps running', async () => {
    const started = start(['http', port, '--log-file', 'missing/tunnel.log']);
    await eventually(() => expect(started.io.out()).toContain('http-'));
    expect(await end(started)).toBe(0);
    const file = join(home.path, 'missing', 'tunnel.log');
    expect(started.io.err()).toMatch(`tunnel: cannot write the log file ${file}: no such folder\n`);
    expect(started.io.err().match(/cannot write/g)).toHaveLength(1);
  });
});

describe('the QR code (--qr)', () => {
  it('shows the first public URL', async () => {
    const started = start(['http', port, '--qr']);
    await eventually(() => expect(started.io.out()).toMatch(/[▀▄█]/));
    await end(started);
    const drawn = started.io
      .out()
      .split('\n')
      .filter((line) => /[▀▄█]/.test(line));
    expect(drawn.every((line) => /^[ ▀▄█]+$/.test(line) && line.length === drawn[0]?.length)).toBe(true);
    expect(drawn.length).toBeGreaterThan(10);
  });

  it('stays above the live view, and is replaced by a message on a narrow terminal', async () => {
    const wide = start(['http', port, '--qr'], { isTTY: true, env: {} });
    await eventually(() => expect(wide.io.out()).toContain('\u001b[97;40m█'));
    await end(wide);
    const narrow = start(['http', port, '--qr'], { isTTY: true, columns: 20 });
    await eventually(() => expect(narrow.io.out()).toContain('the terminal is too narrow for the QR code'));
    await end(narrow);
  });

  it('is omitted with --json', async () => {
    const started = start(['http', port, '--qr', '--json']);
    await eventually(() => expect(started.io.events().map(({ event }) => event)).toContain('ready'));
    await end(started);
    expect(started.io.out()).not.toMatch(/[▀▄█]/);
  });
});

describe.runIf(process.platform === 'linux')('the browser (--open)', () => {
  it('opens the first http tunnel, once', async () => {
    const { calls, PATH } = recordingProgram('xdg-open');
    const entry = `local_port: ${port}`;
    config(
      `tunnels:\n  ssh: { proto: tcp, ${entry} }\n  web: { proto: http, ${entry} }\n  two: { proto: http, ${entry} }\n`,
    );
    const started = start(['start', '--open', '--json'], { env: { PATH } });
    await eventually(() => expect(started.io.events().filter(({ event }) => event === 'ready')).toHaveLength(3));
    await eventually(() => expect(calls()).toEqual([expect.stringMatching(/^http:\/\//)]));
    await end(started);
    expect(calls()).toHaveLength(1);
  });

  it.each([
    ['fails', (): string => recordingProgram('xdg-open', 3).PATH, 'xdg-open failed'],
    ['is not there', (): string => home.path, 'xdg-open is not installed'],
    ['cannot be started', (): string => loopOf('xdg-open'), 'ELOOP'],
  ])('is replaced by a message with the URL when the program %s', async (_, path, reason) => {
    const started = start(['http', port, '--open'], { env: { PATH: path() } });
    await eventually(() =>
      expect(started.io.err()).toMatch(new RegExp(`tunnel: cannot open a browser: .*${reason}\\n  Open http://`)),
    );
    expect(await end(started)).toBe(0);
  });
});
