// Tests of a client whose output nobody reads. The clients are executables, because pipes and terminals of the system are tested.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { withoutOurEnvironment } from '../stack.fixture.ts';
import { commandOf } from '../tunnel-program.fixture.ts';

/** Long enough that the lines of a hundred requests fill every buffer between the client and the reader. */
const LONG_PATH = `/${'a'.repeat(7000)}`;
const REQUESTS_LEAST = 100;
/** Several redraws of a terminal. */
const ASKING_MS = 1000;

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Runs the command in a terminal so wide that no line is cut. */
const inTerminal = (words: readonly string[]): readonly string[] => [
  'script',
  ...['-qec', `stty cols 4000 rows 50; echo $$ > pid; exec ${words.map(quoted).join(' ')}`, '/dev/null'],
];

const killIfAlive = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended.
  }
};

it.for([
  ['a pipe', (words: readonly string[]) => words],
  ...(process.platform === 'linux' ? [['a terminal', inTerminal] as const] : []),
] as const)('requests are answered while nobody reads the lines from %s', async ([, wrap], { harness }) => {
  const stack = await harness.stack();
  const web = harness.use(await startWeb((_request, response) => void response.end('served')));
  const home = await harness.folder();
  const flags = ['--subdomain', 'stalled', '--server', stack.control, '--token-file', stack.tokenFile];
  const { command, args } = commandOf(['http', String(web.port), ...flags]);
  const [program = '', ...words] = wrap([command, ...args]);
  const env = { ...withoutOurEnvironment(), HOME: home, TERM: 'xterm' };
  const child = spawn(program, words, { cwd: home, env, stdio: ['ignore', 'pipe', 'ignore'] });
  const pids = [Number(child.pid)];
  const exited = new Promise<void>((resolve) => void child.on('exit', () => resolve()));
  harness.use({
    close: async () => {
      for (const pid of pids) killIfAlive(pid);
      await exited;
    },
  });
  const edge = endpointOf(stack.run.http_url);
  const ask = async (): Promise<void> => {
    const answer = await askHttp({ ...edge, host: `stalled.localhost:${edge.port}` }, { path: LONG_PATH });
    expect(answer.text).toBe('served');
  };
  await eventually(ask);
  if (wrap === inTerminal) {
    pids.unshift(Number(readFileSync(join(home, 'pid'), 'utf8')));
    // From now on nobody reads the terminal.
    process.kill(Number(child.pid), 'SIGSTOP');
  }
  const until = performance.now() + ASKING_MS;
  for (let asked = 0; asked < REQUESTS_LEAST || performance.now() < until; asked += 10) {
    await Promise.all(Array.from({ length: 10 }, ask));
  }
  expect(child.exitCode).toBeNull();
});
