// The bench beside other tunnels as a program: a short run of our own paths, and one that is ended in the middle.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, spawnProgram, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { cleanEnv, node, ROOT } from './checkout.fixture.ts';
import { descendantsOf } from './processes.fixture.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** CPU and memory are read from /proc; a small helper is compiled. */
const CAN_RUN = existsSync('/proc/self/stat') && spawnSync('cc', ['--version']).error === undefined;
const PEERS = join(ROOT, 'bench/peers.mjs');

it.runIf(CAN_RUN)('a short peers bench measures its paths and does not change the record in docs/', async () => {
  const record = join(ROOT, 'docs/benchmarks-peers.json');
  const before = readFileSync(record, 'utf8');
  const args = ['--quick', '--scenario', 'tcp-beside,tcp-idle', '--path', 'ours,ours-tls'];
  const { code, stdout, stderr } = await node([PEERS, ...args]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('written: .cache/bench/benchmarks-peers.json')]);
  expect(stdout).toMatch(/^\| \*\*ours-tls\*\* \| TLS \| \d/m);
  expect(readFileSync(record, 'utf8')).toBe(before);
});

it.runIf(CAN_RUN)('a peers bench that gets SIGTERM while running leaves no process and no file', async () => {
  const dir = await temporaryDirectory();
  cleanUps.push(() => dir.close());
  const program = await spawnProgram({
    command: process.execPath,
    args: [PEERS, '--quick', '--scenario', 'tcp-idle', '--path', 'ours', '--rounds', '20'],
    env: { ...cleanEnv(), TMPDIR: dir.path },
    cwd: ROOT,
  });
  cleanUps.push(() => program.close());
  // Origin, edge and client at least, and the bench itself where it has a process table of its own.
  await eventually(() => expect(descendantsOf(program.pid).length).toBeGreaterThan(4), { timeoutMs: 30_000 });
  const children = descendantsOf(program.pid);
  program.signal('SIGTERM');
  expect((await program.waitForExit()).code).toBe(143);
  await eventually(() => expect(children.filter(isProcessAlive)).toEqual([]));
  expect(readdirSync(dir.path)).toEqual([]);
});
