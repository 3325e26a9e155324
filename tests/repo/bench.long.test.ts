// The bench as a program: it measures, detects wrong bytes, and leaves nothing behind.
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { isProcessAlive } from '@tunnel/runtime';
import {
  eventually,
  spawnProgram,
  startTcpServer,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { cleanEnv, node, ROOT, run } from './checkout.fixture.ts';
import { descendantsOf } from './processes.fixture.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const RUN = join(ROOT, 'bench/run.mjs');
/** The bench reads processor time and memory from /proc. Without /proc it prints a message and ends. */
const HAS_PROC = existsSync('/proc/self/stat');

const folder = async (): Promise<TemporaryDirectory> => {
  const made = await temporaryDirectory();
  cleanUps.push(() => made.close());
  return made;
};

interface Summary {
  readonly machine: { readonly cores: number };
  readonly scenarios: readonly {
    readonly name: string;
    readonly paths: Record<string, { readonly figures: Record<string, { readonly median: number } | null> }>;
  }[];
}

it.runIf(HAS_PROC)('a short bench measures every path', async () => {
  const dir = await folder();
  const file = join(dir.path, 'figures.json');
  const args = ['--quick', '--scenario', 'tcp-echo', '--path', 'direct,ours,ours-tls', '--json', file];
  const { code, stdout, stderr } = await node([RUN, ...args]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('tcp-echo-50, ours-tls, round 1')]);
  expect(stdout).toContain('| ours-tls |');
  const { machine, scenarios } = JSON.parse(readFileSync(file, 'utf8')) as Summary;
  expect(machine.cores).toBeGreaterThan(0);
  const paths = scenarios[0]?.paths ?? {};
  expect(Object.keys(paths)).toEqual(['direct', 'ours', 'ours-tls']);
  expect(paths['direct']?.figures['cpuPerRoundTripUs']).toBeNull();
  for (const path of ['ours', 'ours-tls']) {
    for (const figure of ['roundTripsPerSecond', 'cpuPerRoundTripUs', 'p99Ms', 'edgePeakMb', 'clientPeakMb']) {
      expect(paths[path]?.figures[figure]?.median, `${path} ${figure}`).toBeGreaterThan(0);
    }
  }
});

const HAS_WRK = spawnSync('wrk', ['--version']).error === undefined;

it.runIf(HAS_PROC && HAS_WRK)(
  'HTTP scenarios measure the processor time of a request with and without captures',
  async () => {
    const dir = await folder();
    const file = join(dir.path, 'figures.json');
    const { code, stderr } = await node([RUN, '--quick', '--scenario', 'http-captures', '--json', file]);
    expect([code, stderr]).toEqual([0, expect.stringContaining('http-captures, ours-uncaptured, round 1')]);
    const { scenarios } = JSON.parse(readFileSync(file, 'utf8')) as Summary;
    for (const path of ['ours', 'ours-uncaptured']) {
      expect(scenarios[0]?.paths[path]?.figures['cpuPerRequestUs']?.median, path).toBeGreaterThan(0);
    }
  },
);

it.runIf(HAS_PROC)('without wrk the bench skips HTTP scenarios and prints that wrk is not installed', async () => {
  const dir = await folder();
  const file = join(dir.path, 'figures.json');
  const args = [process.execPath, RUN, '--quick', '--scenario', 'http', '--json', file];
  const { code, stderr } = await run('env', [`PATH=${dir.path}`, ...args]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('wrk is not installed')]);
  expect((JSON.parse(readFileSync(file, 'utf8')) as Summary).scenarios).toEqual([]);
});

it('npm run bench prints the scenarios with --list, and exits with 2 for an unknown scenario or an invalid number', async () => {
  expect((await node([RUN, '--list'])).stdout).toMatch(/^tcp-bulk-down-1 /);
  expect(await node([RUN, '--scenario', 'tcp-nothing'])).toMatchObject({ code: 2 });
  expect(await node([RUN, '--rounds', 'many'])).toMatchObject({ code: 2 });
});

it.runIf(HAS_PROC)('a bench that gets SIGINT while running leaves no process and no file', async () => {
  const dir = await folder();
  const program = await spawnProgram({
    command: process.execPath,
    args: [RUN, '--quick', '--scenario', 'tcp-idle', '--path', 'ours', '--rounds', '20'],
    env: { ...cleanEnv(), TMPDIR: dir.path },
    cwd: ROOT,
  });
  cleanUps.push(() => program.close());
  // The child processes are origin, two generators, edge and client.
  await eventually(() => expect(descendantsOf(program.pid)).toHaveLength(5), { timeoutMs: 30_000 });
  const children = descendantsOf(program.pid);
  program.signal('SIGINT');
  expect((await program.waitForExit()).code).toBe(130);
  await eventually(() => expect(children.filter(isProcessAlive)).toEqual([]));
  expect(readdirSync(dir.path)).toEqual([]);
});

const serve = async (onConnection: (socket: Socket) => void): Promise<TcpServer> => {
  const server = await startTcpServer(onConnection);
  cleanUps.push(() => server.close());
  return server;
};

const generator = (): ChildProcess => {
  const child = fork(join(ROOT, 'bench/load/generator.mjs'), { execArgv: [] });
  cleanUps.push(() => child.kill('SIGKILL'));
  return child;
};

it.each([
  ['echo', { connections: 1, warmUpMs: 50, measureMs: 50 }, 'an echo is not what was sent'],
  ['connect', { concurrency: 1, warmUpRequests: 1, requests: 1 }, 'an answer is not what was sent'],
  ['bulk', { direction: 'down', streams: 1, warmUpBytes: 128, bytes: 128 }, 'other bytes than were sent'],
  ['bulk', { direction: 'up', streams: 1, warmUpBytes: 128, bytes: 128 }, 'an upload brought'],
  ['httpProbe', { bytes: 128, keepAlive: true }, 'an answer was cut off'],
  ['paced', { path: '/health', status: 200, perSecond: 1, seconds: 1 }, 'Parse Error'],
])('the load job `%s` fails if the service sends wrong bytes', async (job, parameters, message) => {
  // A wrong answer of the right length. An echo connection stays open afterwards; other connections end.
  const wrong = Buffer.alloc(128, 0xaa);
  const server = await serve((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => (job === 'echo' ? socket.write(wrong) : socket.end(wrong)));
  });
  const child = generator();
  child.send({ type: 'job', job, parameters, address: { host: '127.0.0.1', port: server.port } });
  const [answer] = (await once(child, 'message')) as [{ type: string; message?: string }];
  expect(answer).toEqual({ type: 'failed', message: expect.stringContaining(message) });
});

it('the micro bench measures the selection of a member among 2,000 groups', async () => {
  const { code, stdout } = await node([join(ROOT, 'bench/micro.mjs'), '2,000 groups']);
  expect(code).toBe(0);
  expect(stdout.match(/^groups: .* among 2,000 groups +[\d,]+ +[\d.]+ +[\d.]+$/gm)).toHaveLength(2);
});
