// Tests of uncaught errors: the crash report, the parts that keep running, and the exit of a standalone server.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, spawnProgram } from '@tunnel/testkit';
import { expect, it as plainIt } from 'vitest';
import { SERVER_BIN } from '../repo/checkout.fixture.ts';
import { type ServerDir, startServer, waitUntilReady, withServerDir } from '../repo/server-program.fixture.ts';
import { INSPECTABLE, throwIn } from './inspector.fixture.ts';
import { partsOf, pidOfPart } from './kill-trial.fixture.ts';
import { Person, startPlatform } from './platform-test.fixture.ts';
import { withoutOurEnvironment } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';

interface CrashReport {
  readonly part: string;
  readonly uptime_secs: number;
  readonly exit_code: number;
  readonly error: { readonly message: string; readonly stack: string };
  readonly counters: Record<string, number>;
}

const SOON = { timeoutMs: 30_000 };
const SECRET = 'tnl_0123456789abcdefghijABCDEFGHIJ01abcdef';

const crashesIn = ({ dataDir }: Pick<ServerDir, 'dataDir'>): CrashReport[] => {
  const folder = join(dataDir, 'crashes');
  return readdirSync(folder)
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as CrashReport);
};

plainIt(
  'an uncaught error in a part of a stack leaves a crash report with a stack trace and no secrets, and the part restarts',
  () =>
    withServerDir(async (at, use) => {
      const program = use(await startServer(at, INSPECTABLE));
      const parent = await waitUntilReady(program);
      const run = readFileSync(join(at.dataDir, 'run.json'), 'utf8');
      for (const part of ['edge', 'platform']) {
        const pid = pidOfPart(at.dataDir, part);
        await throwIn(program, pid, `broken by ${SECRET}`);
        await eventually(() => expect(pidOfPart(at.dataDir, part)).not.toBe(pid), SOON);
        const line = new RegExp(`"part":"${part}","msg":"a process is running again"`);
        await program.waitForLine(line, SOON);
        // Takes the first report of the part. Later reports could come from failed restarts.
        const report = crashesIn(at).find((one) => one.part === part);
        expect(report).toMatchObject({ part, exit_code: 1, error: { message: 'broken by tnl_[secret]' } });
        expect(report?.error.stack).toContain('raised');
        expect(report?.uptime_secs).toBeGreaterThan(0);
        expect(report?.counters['rss_bytes']).toBeGreaterThan(1_000_000);
      }
      expect(crashesIn(at)[0]?.counters).toMatchObject({ sessions: 0, tunnels: 0, connections: 0 });
      // The parent is still the same process at the same addresses.
      expect(readFileSync(join(at.dataDir, 'run.json'), 'utf8')).toBe(run);
      const { pid, metrics_url, platform_url } = JSON.parse(run) as Record<string, string>;
      expect(pid).toBe(parent);
      expect((await fetch(metrics_url ?? '')).status).toBe(200);
      expect(await (await fetch(`${platform_url}/health`)).json()).toEqual({ ok: true });
      program.signal('SIGTERM');
      expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
      expect(program.stderr.join('\n')).not.toContain(SECRET);
    }),
);

plainIt('an uncaught error in the parent of a stack leaves a crash report, and ends all parts with exit code 1', () =>
  withServerDir(async (at, use) => {
    const program = use(await startServer(at, INSPECTABLE));
    await throwIn(program, await waitUntilReady(program), 'broken');
    expect(await program.waitForExit()).toMatchObject({ code: 1 });
    expect(crashesIn(at)).toMatchObject([{ part: 'stack', error: { message: 'broken' } }]);
    await eventually(() => expect(partsOf(at.dataDir)).toEqual([]), SOON);
  }),
);

plainIt('an uncaught error in a standalone edge leaves a crash report, and ends the edge with exit code 1', () =>
  withServerDir(async (at, use) => {
    const env = { ...withoutOurEnvironment(), ...INSPECTABLE };
    const args = [SERVER_BIN, 'edge', ...at.flags];
    const program = use(await spawnProgram({ command: process.execPath, args, env, cwd: at.dir.path }));
    await throwIn(program, await waitUntilReady(program), 'broken');
    expect(await program.waitForExit()).toMatchObject({ code: 1 });
    expect(crashesIn(at)).toMatchObject([{ part: 'edge', exit_code: 1, counters: { sessions: 0 } }]);
  }),
);

it('while the edge hangs, the API answers, with a warning where data of the edge is missing', async ({ harness }) => {
  const stack = await startPlatform(harness, { fixedPorts: true, tables: '[load_balancing]\nenabled = true' });
  const person = await Person.signUp(stack);
  const { id: keyId } = await person.newKey();
  expect((await person.pools()).warnings).toEqual([]);
  const edge = pidOfPart(stack.dataDir, 'edge');
  const control = stack.control;
  // The edge is stopped, not killed: a killed edge would be back before the first API call.
  process.kill(edge, 'SIGSTOP');
  try {
    const { warnings } = await person.pools();
    expect(warnings).toEqual([expect.stringContaining('did not answer')]);
    const keys = await person.get<{ id: string }[]>('/keys');
    expect(keys.map(({ id }) => id)).toEqual([keyId]);
  } finally {
    process.kill(edge, 'SIGKILL');
  }
  await eventually(async () => expect((await person.pools()).warnings).toEqual([]), SOON);
  expect(stack.control).toBe(control);
});
