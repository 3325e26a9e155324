// Starts the bench's child processes and makes sure that none outlives the bench. Each child leads a separate process group: Ctrl-C in a
// terminal reaches only the bench, which ends the groups it created by id.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TAIL_CHARS = 4000;

const living = new Set();
const folders = new Set();

/**
 * Returns the environment without settings of the user who runs the bench for our programs and for Node.js: NODE_OPTIONS would change the
 * measured programs, and NODE_EXTRA_CA_CERTS costs 65 ms of processor time at each start on Node.js 20.
 */
export const neutralEnvironment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:TUNNEL_|NODE_)/.test(name)));

/**
 * @param {{ name: string, command: string, args: string[], env?: NodeJS.ProcessEnv, ipc?: boolean, cwd?: string }} what
 * `exited` never rejects; `output` contains the end of stdout and stderr; `onLine` is called for each line of stdout.
 */
export function startChild({ name, command, args, env = neutralEnvironment(), ipc = false, cwd, onLine }) {
  const stdio = ['pipe', 'pipe', 'pipe', ...(ipc ? ['ipc'] : [])];
  const startedAt = performance.now();
  const process_ = spawn(command, args, { env, cwd, stdio, detached: true });
  const started = { name, process: process_, pid: process_.pid, startedAt, cwd };
  const child = { ...started, output: '', exit: null, exited: Promise.resolve() };
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

/** Rejects when the child exits. Race it against a result that is expected of the child. */
export async function failAtExit(child) {
  const exit = await child.exited;
  throw new Error(`${child.name} ended (${exit}) ${child.output === '' ? '' : `and said:\n${child.output.trim()}`}`);
}

/** Runs a program to its end, and returns the milliseconds that it took. */
export async function untilExit(what) {
  const child = startChild(what);
  await child.exited;
  return performance.now() - child.startedAt;
}

export async function stopChild(child, signal = 'SIGKILL') {
  signalGroup(child, signal);
  await child.exited;
  // A program that ended in order may have left a child process behind. The group still has the same id.
  if (signal !== 'SIGKILL') signalGroup(child, 'SIGKILL');
}

/** Returns the running children that work in a measurement's folder, including those that a path had started before it failed. */
export const childrenIn = (folder) => [...living].filter(({ cwd }) => cwd === folder);

function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: all processes of the group have ended already.
  }
}

/** Creates a temporary folder that is deleted at the end of the process. */
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

/** Installs the handlers that stop all children. Called once by each bench program before it starts anything. */
export function leaveNothingBehind() {
  process.on('exit', leaveNothing);
  for (const [signal, code] of Object.entries(EXIT_CODES)) process.on(signal, () => process.exit(code));
}
