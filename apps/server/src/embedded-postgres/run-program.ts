// Runs one of PostgreSQL's programs to its end, as the user the server runs as.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import type { Binaries } from './binaries.ts';
import type { RunAs } from './run-as.ts';

export interface Programs {
  readonly binaries: Binaries;
  readonly user: RunAs;
}

/** In a group of its own, so that Ctrl-C in a terminal does not reach it. */
export const spawnAs = (
  { binaries, user }: Programs,
  program: string,
  args: readonly string[],
  stdio: SpawnOptions['stdio'],
): ChildProcess => {
  const [command = program, ...rest] = [...user.prefix, program, ...args];
  return spawn(command, rest, {
    cwd: '/',
    // PG* of our environment are for clients of other servers.
    env: { PATH: process.env['PATH'], TZ: process.env['TZ'], LC_ALL: 'C', ...binaries.env },
    detached: true,
    stdio,
    ...user.spawnIds,
  });
};

/** Rejects with the last line it said. */
export const runProgram = async (
  programs: Programs,
  program: string,
  args: readonly string[],
  { input, timeoutMs }: { input: string; timeoutMs: number },
): Promise<void> => {
  const child = spawnAs(programs, program, args, ['pipe', 'ignore', 'pipe']);
  const late = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-4096);
  });
  // A program that left early makes the write fail; its exit says more than that.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        if (code === 0) resolve();
        else reject(new Error(lastProblem(said) ?? `it ended with ${signal ?? code}`));
      });
    });
  } finally {
    clearTimeout(late);
  }
};

/** The line that says what went wrong: the last one that calls itself an error, else the last one. */
export const lastProblem = (text: string): string | undefined => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => /\b(FATAL|PANIC|error|could not)\b/.test(line)) ?? lines.at(-1);
};
