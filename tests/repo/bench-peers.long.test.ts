// The peers bench as a program: a short run of Hatchway's paths, and a run that is interrupted.
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

/** The bench reads processor time and memory from /proc, and compiles a small helper with cc. */
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
  // At least origin, edge and client, plus the bench process if it has a separate process table.
  await eventually(() => expect(descendantsOf(program.pid).length).toBeGreaterThan(4), { timeoutMs: 30_000 });
  const children = descendantsOf(program.pid);
  program.signal('SIGTERM');
  expect((await program.waitForExit()).code).toBe(143);
  await eventually(() => expect(children.filter(isProcessAlive)).toEqual([]));
  expect(readdirSync(dir.path)).toEqual([]);
});
