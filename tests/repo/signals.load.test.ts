// Signals through npm: each way of asking drains, ends with 0 and leaves no process behind.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect } from '@tunnel/client';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, type Program, spawnProgram, startEchoServer } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { cleanEnv, ROOT } from './checkout.fixture.ts';
import {
  makeServerDir,
  readRunJson,
  type ServerDir,
  startServer,
  startWithNpm,
  waitUntilReady,
} from './server-program.fixture.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const serverDir = async (): Promise<ServerDir> => {
  const made = await makeServerDir('drain_secs = 20');
  cleanUps.push(() => made.dir.close());
  return made;
};

/** A visitor who talks to an echo service through a tunnel of this server. */
const visit = async (at: ServerDir): Promise<Socket> => {
  const run = readRunJson(at);
  const echo = await startEchoServer();
  cleanUps.push(() => echo.close());
  const client = await connect({ server: run.control, token: readFileSync(run.admin_token_file, 'utf8').trim() });
  cleanUps.push(() => client.close());
  const tunnel = await client.open({ protocol: 'tcp', localPort: echo.port });
  const visitor = dial({ host: '127.0.0.1', port: Number(new URL(tunnel.publicUrl).port) });
  cleanUps.push(() => visitor.destroy());
  await echoes(visitor, 'before');
  return visitor;
};

const echoes = async (visitor: Socket, text: string): Promise<void> => {
  visitor.write(text);
  const [answer] = (await once(visitor, 'data')) as [Buffer];
  expect(answer.toString()).toBe(text);
};

/** Whatever was asked: the open connection goes on, then the program ends, all of it. */
const expectDrained = async (at: ServerDir, program: Program, server: number, visitor: Socket): Promise<void> => {
  await program.waitForLine(/stopping/);
  await echoes(visitor, 'while draining');
  expect(isProcessAlive(server)).toBe(true);
  visitor.end();
  expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
  await eventually(() => expect(isProcessAlive(server)).toBe(false));
  expect(() => process.kill(-program.pid, 0)).toThrow('ESRCH');
  expect(existsSync(join(at.dataDir, 'run.json'))).toBe(false);
  // The database leads a group of its own: it is gone when its pid file is.
  expect(existsSync(join(at.dataDir, 'postgres/postmaster.pid'))).toBe(false);
};

const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false;

it.each([
  ['SIGTERM to npm alone', (program: Program) => program.signal('SIGTERM')],
  ['SIGTERM to the group', (program: Program) => program.signalGroup('SIGTERM')],
  // A terminal does this at a Ctrl-C: where one can be made, the next test has it.
  ...(hasScript ? [] : [['SIGINT to the group', (program: Program) => program.signalGroup('SIGINT')] as const]),
] as const)('%s drains, ends with 0 and leaves nothing behind', async (_, ask) => {
  const at = await serverDir();
  const program = await startWithNpm(at);
  cleanUps.push(() => program.close());
  const server = await waitUntilReady(program);
  const visitor = await visit(at);
  ask(program);
  await expectDrained(at, program, server, visitor);
});

// Where util-linux's `script` is missing, this one is skipped: nothing else here makes a terminal.
it.runIf(hasScript)('Ctrl-C in a terminal drains, ends with 0 and leaves nothing behind', async () => {
  const at = await serverDir();
  // exec: a plain sh (what $SHELL falls back to) would die of the Ctrl-C itself, whatever npm ends with.
  const typed = `exec npm start -- ${at.flags.join(' ')}`;
  const env = { ...cleanEnv(), TUNNEL_LOG: 'json' };
  const program = await spawnProgram({ command: 'script', args: ['-qec', typed, '/dev/null'], env, cwd: ROOT });
  cleanUps.push(() => program.close());
  const server = await waitUntilReady(program);
  cleanUps.push(() => isProcessAlive(server) && process.kill(server, 'SIGKILL'));
  const visitor = await visit(at);
  program.write('\u0003');
  await expectDrained(at, program, server, visitor);
});

// npm passes a terminal's signal on when it gets to it: on a busy machine the server is nearly through by then.
it('a signal that is repeated until the process is gone does not spoil its orderly end', async () => {
  const at = await serverDir();
  const program = await startServer(at);
  cleanUps.push(() => program.close());
  await waitUntilReady(program);
  await eventually(
    () => {
      if (program.exit === null) program.signal('SIGINT');
      expect(program.exit).not.toBeNull();
    },
    { timeoutMs: 30_000, intervalMs: 1 },
  );
  // 130: on a busy machine the end takes longer than the second in which signals are the same one. Never by the signal itself.
  expect(program.exit?.signal).toBeNull();
  expect([0, 130]).toContain(program.exit?.code);
});

it('a second signal, later than a second, ends at once', async () => {
  const at = await serverDir();
  const program = await startServer(at);
  cleanUps.push(() => program.close());
  await waitUntilReady(program);
  const visitor = await visit(at);
  visitor.on('error', () => {});
  program.signal('SIGTERM');
  await program.waitForLine(/stopping/);
  await eventually(
    () => {
      program.signal('SIGTERM');
      expect(program.exit).toEqual({ code: 143, signal: null });
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  expect(existsSync(join(at.dataDir, 'run.json'))).toBe(false);
});
