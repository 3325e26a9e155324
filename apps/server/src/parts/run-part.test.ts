// The life of a server part inside the test process, with a stand-in for the channel to the parent.
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { loadServerConfig } from '@tunnel/config/server';
import { takeLock } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ServerHost } from '../process/host.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { type FromPart, type StartPart, type ToPart, toPlainConfig } from '../stack/messages.ts';
import { runPart } from './run-part.ts';

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.close());

class Parent {
  readonly clock = new FakeClock();
  readonly said: FromPart[] = [];
  readonly exits: number[] = [];
  readonly #channel = new EventEmitter();
  #uncaught: (error: unknown) => void = () => {};
  #waiting: { readonly kind: FromPart['kind']; readonly resolve: () => void }[] = [];
  /** Whether the parent reads messages of the part. A parent that hangs does not. */
  isReading = true;
  readonly run: Promise<number>;

  constructor({ isThere = true } = {}) {
    const host: ServerHost = {
      env: {},
      stdout: new PassThrough(),
      stderr: new PassThrough().resume(),
      pid: process.pid,
      platform: process.platform,
      workingDir: directory.path,
      clock: this.clock,
      signals: new EventEmitter(),
      parent: {
        connected: isThere,
        on: (event: string, listener: (message: unknown) => void) => this.#channel.on(event, listener),
        send: (message: FromPart, done?: () => void) => {
          if (!this.isReading) return false;
          this.#heard(message);
          done?.();
          return true;
        },
      } as ServerHost['parent'],
      uptimeMs: () => 0,
      onUncaught: (listener) => {
        this.#uncaught = listener;
      },
      releaseStartMemory: () => {},
      exit: (code) => this.exits.push(code),
    };
    this.run = runPart('edge', host);
  }

  tell(message: ToPart): void {
    this.#channel.emit('message', message);
  }

  goAway(): void {
    this.#channel.emit('disconnect');
  }

  throwInPart(error: unknown): void {
    this.#uncaught(error);
  }

  hears(kind: FromPart['kind']): Promise<void> {
    if (this.said.some((message) => message.kind === kind)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ kind, resolve }));
  }

  #heard(message: FromPart): void {
    this.said.push(message);
    for (const { kind, resolve } of this.#waiting) if (kind === message.kind) resolve();
  }
}

const startMessage = (ports: object = {}): StartPart => {
  const server = { control_port: 0, http_port: 0, api_port: 0, metrics_port: 0, ...ports };
  const config = loadServerConfig({ env: {}, overrides: { server, udp: { ports: [] } } });
  return {
    kind: 'start',
    settings: toPlainConfig(config),
    dataDir: directory.path,
    adminToken: 'token',
    edgeCredential: 'tne_credential',
    databaseUrl: '',
    linkPort: 0,
    platformUrl: 'http://127.0.0.1:1',
    visitorSecret: null,
    platformAt: null,
  };
};

it('a part exits at once without a parent, and when its parent disconnects', async () => {
  expect(new Parent({ isThere: false }).exits).toEqual([EXIT_UNEXPECTED]);
  const parent = new Parent();
  await parent.hears('loaded');
  expect(parent.exits).toEqual([]);
  parent.goAway();
  expect(parent.exits).toEqual([EXIT_UNEXPECTED]);
});

it('a part reports "ready" and counters, and exits when told to stop', async () => {
  const parent = new Parent();
  await parent.hears('loaded');
  parent.tell(startMessage());
  await parent.hears('counters');
  expect(parent.said.map(({ kind }) => kind)).toEqual(['loaded', 'ready', 'counters']);
  parent.tell({ kind: 'restarts', restarts: { edge: 1 } });
  parent.tell({ kind: 'edge-at', url: null });
  await parent.clock.advance(5000);
  expect(parent.said.at(-1)).toMatchObject({ kind: 'counters', counters: { sessions: 0 } });
  parent.tell({ kind: 'stop', drainMs: 0 });
  await parent.clock.advance(10_000);
  expect(await parent.run).toBe(EXIT_OK);
});

it('a part that cannot start reports the reason and exits', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  try {
    const parent = new Parent();
    await parent.hears('loaded');
    parent.tell(startMessage({ metrics_port: port }));
    await parent.hears('failed');
    expect(parent.said.at(-1)).toMatchObject({ kind: 'failed', fault: { code: 'CONFIG_PORT_TAKEN' } });
    expect(await parent.run).toBe(EXIT_UNEXPECTED);
  } finally {
    other.close();
  }
});

it('an uncaught error is sent to the parent and ends the part, at the latest after 500 ms', async () => {
  for (const isReading of [true, false]) {
    const parent = new Parent();
    await parent.hears('loaded');
    parent.tell(startMessage());
    await parent.hears('counters');
    parent.isReading = isReading;
    parent.throwInPart(new Error('broken'));
    await parent.clock.advance(499);
    if (!isReading) expect(parent.exits).toEqual([]);
    await parent.clock.advance(1);
    await eventually(() => expect(parent.exits).toEqual([EXIT_UNEXPECTED]));
    const last = parent.said.at(-1);
    if (isReading) expect(last).toMatchObject({ kind: 'crashed', error: { message: 'broken' } });
    else expect(last?.kind).toBe('counters');
    parent.tell({ kind: 'stop', drainMs: 0 });
    await parent.clock.advance(10_000);
    await parent.run;
  }
});

/** Tells the part to stop, and expects a clean exit. */
const stop = async (parent: Parent): Promise<void> => {
  parent.tell({ kind: 'stop', drainMs: 0 });
  await parent.clock.advance(10_000);
  expect(await parent.run).toBe(EXIT_OK);
};

it('a part opens nothing until the part of an earlier run has released its lock', async () => {
  const held = takeLock(join(directory.path, 'edge.lock'));
  const parent = new Parent();
  await parent.hears('loaded');
  parent.tell(startMessage());
  // Less than three seconds: after three seconds the part would kill the holder of the lock, which is the test process.
  await parent.clock.advance(2000);
  expect(parent.said.map(({ kind }) => kind)).toEqual(['loaded']);
  held?.release();
  await parent.clock.advance(20);
  await parent.hears('ready');
  await stop(parent);
});

it('a hanging part of an earlier run is killed after three seconds', async () => {
  const hung = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const ended = once(hung, 'exit');
  try {
    const text = { host: hostname(), pid: hung.pid, started: '', nonce: 'hung' };
    writeFileSync(join(directory.path, 'edge.lock'), JSON.stringify(text));
    const parent = new Parent();
    await parent.hears('loaded');
    parent.tell(startMessage());
    await parent.clock.advance(2980);
    expect([hung.signalCode, parent.said.length]).toEqual([null, 1]);
    await parent.clock.advance(20);
    expect(await ended).toEqual([null, 'SIGKILL']);
    await eventually(async () => {
      await parent.clock.advance(20);
      expect(parent.said.map(({ kind }) => kind)).toContain('ready');
    });
    await stop(parent);
  } finally {
    hung.kill('SIGKILL');
  }
});

it('a part starts even if its lock cannot be written', async () => {
  mkdirSync(join(directory.path, 'edge.lock'));
  const parent = new Parent();
  await parent.hears('loaded');
  parent.tell(startMessage());
  await parent.hears('ready');
  await stop(parent);
});
