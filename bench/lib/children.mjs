// Every process the bench starts, and the promise that none of them outlives it. Each child leads a group of its own:
// Ctrl-C in a terminal reaches only the bench, and the bench ends the groups it made, by id.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TAIL_CHARS = 4000;

const living = new Set();
const folders = new Set();

/**
 * @param {{ name: string, command: string, args: string[], env?: NodeJS.ProcessEnv, ipc?: boolean, cwd?: string }} what
 * `exited` never rejects; `output` holds the last of both streams; `onLine` is called for each line of stdout.
 */
export function startChild({ name, command, args, env = process.env, ipc = false, cwd, onLine }) {
  const stdio = ['pipe', 'pipe', 'pipe', ...(ipc ? ['ipc'] : [])];
  const process_ = spawn(command, args, { env, cwd, stdio, detached: true });
  const child = { name, process: process_, pid: process_.pid, cwd, output: '', exit: null, exited: Promise.resolve() };
  const keep = (chunk) => {
    child.output = (child.output + chunk).slice(-TAIL_CHARS);
  };
  process_.stdin.on('error', () => {});
  process_.stderr.setEncoding('utf8').on('data', keep);
  process_.stdout.setEncoding('utf8').on('data', keep);
  if (onLine) eachLine(process_.stdout, onLine);
  child.exited = new Promise((resolve) => {
    const over = (exit) => {
      child.exit ??= exit;
      living.delete(child);
      resolve(child.exit);
    };
    process_.once('error', (error) => {
      keep(error.message);
      over(error.message);
    });
    process_.once('exit', (code, signal) => over(signal ?? `exit code ${code}`));
  });
  living.add(child);
  return child;
}

function eachLine(stream, onLine) {
  let rest = '';
  stream.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) onLine(line);
  });
}

/** Rejects when the child ends; race it against whatever is expected of the child. */
export async function failAtExit(child) {
  const exit = await child.exited;
  throw new Error(`${child.name} ended (${exit}) ${child.output === '' ? '' : `and said:\n${child.output.trim()}`}`);
}

export async function stopChild(child, signal = 'SIGKILL') {
  signalGroup(child, signal);
  await child.exited;
  // A program that ended in order may have left a child behind; its group still has the id.
  if (signal !== 'SIGKILL') signalGroup(child, 'SIGKILL');
}

/** Those that work in the folder of a measurement: what a path had started before it failed, too. */
export const childrenIn = (folder) => [...living].filter(({ cwd }) => cwd === folder);

function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: all of them are gone already.
  }
}

/** A folder that is gone at the end. */
export function throwAwayFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-bench-'));
  folders.add(folder);
  return folder;
}

export function removeFolder(folder) {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true });
}

function leaveNothing() {
  for (const child of living) signalGroup(child, 'SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** Called once by each program of the bench, before it starts anything. */
export function leaveNothingBehind() {
  process.on('exit', leaveNothing);
  for (const [signal, code] of Object.entries(EXIT_CODES)) process.on(signal, () => process.exit(code));
}
