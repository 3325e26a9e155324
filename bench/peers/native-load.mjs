// Visitors and origin in C (load/), with the same messages as the workers of bench/load, so that stages and scenarios need no changes.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';
import { failAtExit, startChild, stopChild } from '../lib/children.mjs';
import { loopback } from '../lib/network.mjs';
import { Worker } from '../lib/worker.mjs';

const SOURCES = ['load.h', 'datagrams.c', 'origin.c', 'visitors.c'].map((name) =>
  fileURLToPath(new URL(`load/${name}`, import.meta.url)),
);
const PROGRAM = join(CACHE_DIR, 'peers/load');
const JOB_TIMEOUT_MS = 120_000;

/** @returns {{ missing?: string }} `missing` is the message if the load cannot be compiled */
export function compileLoad() {
  const newest = Math.max(...SOURCES.map((file) => statSync(file).mtimeMs));
  if (existsSync(PROGRAM) && statSync(PROGRAM).mtimeMs >= newest) return {};
  mkdirSync(join(CACHE_DIR, 'peers'), { recursive: true });
  const { error, status, stderr } = spawnSync('cc', ['-O2', '-o', PROGRAM, ...SOURCES.slice(1)], { encoding: 'utf8' });
  if (error) return { missing: 'there is no C compiler for the load (Debian: apt install gcc libc6-dev)' };
  return status === 0 ? {} : { missing: `the load cannot be compiled: ${stderr.slice(-500)}` };
}

/** Arguments after the port on a job's command line. */
const ARGUMENTS = {
  bulk: ({ direction, warmUpSeconds, seconds }) => [direction, warmUpSeconds, seconds],
  echo: ({ bytes, warmUpSeconds, seconds }) => [bytes, warmUpSeconds, seconds],
  endless: ({ warmUpSeconds, seconds }) => [warmUpSeconds, seconds],
  hold: ({ connections }) => [connections],
  datagrams: ({ bytes, visitors, warmUpSeconds, seconds }) => [bytes, visitors, warmUpSeconds, seconds],
};

/** A process of the C program, one per job. */
class NativeProcess {
  #child;
  #inbox = [];
  #wake = () => {};

  constructor(args) {
    const onLine = (line) => {
      this.#inbox.push(JSON.parse(line));
      this.#wake();
    };
    this.#child = startChild({ name: `load ${args[0]}`, command: PROGRAM, args: args.map(String), onLine });
  }

  send() {
    this.#child.process.stdin.write('go\n');
  }

  async next(timeoutMs = JOB_TIMEOUT_MS) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.#child.name}: no answer`)), timeoutMs);
    });
    const arrived = new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#inbox.length > 0) resolve();
    });
    // The last line of a process can arrive after the event of its exit.
    const ended = this.#child.exited.then(() => new Promise((resolve) => setTimeout(resolve, 50)));
    try {
      await Promise.race([arrived, late, ended.then(() => (this.#inbox.length > 0 ? null : failAtExit(this.#child)))]);
    } finally {
      clearTimeout(timer);
    }
    const message = this.#inbox.shift();
    if (message.type === 'failed') throw new Error(message.message);
    return message;
  }

  close() {
    return stopChild(this.#child);
  }
}

/** Runs the jobs of the C program, and passes HTTP jobs to the generator of bench/load. */
class Visitors {
  #generator = new Worker('generator', loopback);
  #native = null;
  #current = this.#generator;

  send(message) {
    if (message.type === 'go') return this.#current.send(message);
    const args = ARGUMENTS[message.job];
    void this.#native?.close();
    this.#native = args && new NativeProcess([message.job, message.address.port, ...args(message.parameters)]);
    this.#current = this.#native ?? this.#generator;
    if (!this.#native) this.#generator.send(message);
    return undefined;
  }

  next(timeoutMs) {
    return this.#current.next(timeoutMs);
  }

  async close() {
    await Promise.all([this.#native?.close(), this.#generator.close()]);
  }
}

/** The environment of bench/lib with native visitors and origin. */
export class NativeGround {
  network = loopback;
  origin = new NativeProcess(['origin']);
  generator = new Visitors();
  crowd = new Visitors();
  originPort = 0;

  async start() {
    this.originPort = (await this.origin.next()).port;
    return this;
  }

  /** Replaces the visitors after a failure, because their further messages belong to the failed measurement. */
  async renew() {
    await Promise.all([this.generator.close(), this.crowd.close()]);
    this.generator = new Visitors();
    this.crowd = new Visitors();
  }

  async close() {
    await Promise.all([this.origin.close(), this.generator.close(), this.crowd.close()]);
  }
}
