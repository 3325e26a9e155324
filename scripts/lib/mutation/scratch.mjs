// A copy of the checkout below .cache in which files can be broken. Tracked files are copied, installed packages are hard links.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CACHE_DIR, ROOT } from '../paths.mjs';

const DIR = join(CACHE_DIR, 'mutants');
const REPORT = join(CACHE_DIR, 'mutant.json');

/** Processor time used by tests per second of run time, on two cores. */
const PROCESSOR_SHARE = 0.8;
const INTERRUPT_MS = 10_000;

/** Vitest configuration that sorts tests by their distance from the broken file, because the nearest tests find the fault soonest. */
const CONFIG = `import { BaseSequencer } from 'vitest/node';
import config from './vitest.config.ts';
const near = (path) => {
  const file = process.env.MUTATED_FILE.replace(/\\.ts$/, '.');
  let common = 0;
  while (common < file.length && file[common] === path[common]) common++;
  return common;
};
class NearFirst extends BaseSequencer {
  async sort(files) {
    return files.toSorted((a, b) => near(b.moduleId) - near(a.moduleId));
  }
}
export default { ...config, test: { ...config.test, sequence: { sequencer: NearFirst } } };
`;

export class Scratch {
  constructor() {
    rmSync(DIR, { recursive: true, force: true });
    mkdirSync(DIR, { recursive: true });
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 }).split(
      '\0',
    );
    for (const file of files.filter(Boolean)) {
      mkdirSync(dirname(join(DIR, file)), { recursive: true });
      cpSync(join(ROOT, file), join(DIR, file), { verbatimSymlinks: true });
    }
    const installed = execFileSync('find', ['.', '-name', 'node_modules', '-prune', '-not', '-path', './.cache/*'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    // Uses hard links, because copying half a gigabyte would take longer than the tests.
    for (const folder of installed.split('\n').filter(Boolean))
      execFileSync('cp', ['-al', folder, join(DIR, folder)], { cwd: ROOT });
    writeFileSync(join(DIR, 'mutants.config.ts'), CONFIG);
  }

  read(file) {
    return readFileSync(join(ROOT, file), 'utf8');
  }

  /** Replaces the text of a file while `act` runs. */
  async withText(file, text, act) {
    writeFileSync(join(DIR, file), text);
    try {
      return await act();
    } finally {
      writeFileSync(join(DIR, file), this.read(file));
    }
  }

  /**
   * Runs tests up to the first failure. Times are corrected for a busy machine: see `Stopwatch`.
   * @returns {Promise<{ outcome: 'passed' | 'failed' | 'late', by?: string, ms: number }>}
   */
  async judge(file, tests, limitMs) {
    rmSync(REPORT, { force: true });
    const args = [
      join(DIR, 'node_modules/vitest/vitest.mjs'),
      ...[
        'run',
        '--bail=1',
        '--maxWorkers=2',
        '--config',
        'mutants.config.ts',
        '--reporter=json',
        `--outputFile=${REPORT}`,
      ],
      ...tests.map((test) => join(DIR, test)),
    ];
    const env = { ...process.env, MUTATED_FILE: join(DIR, file) };
    const child = spawn(process.execPath, args, { cwd: DIR, env, detached: true, stdio: 'ignore' });
    const { code, isLate, ms } = await ended(child, limitMs);
    if (isLate) return { outcome: 'late', ms };
    return code === 0 ? { outcome: 'passed', ms } : { outcome: 'failed', by: firstFailure(), ms };
  }
}

/**
 * Waits for the end of a test run, and resolves with the exit code. A late run is interrupted, so that the run stops its servers, and
 * killed if the interrupt does not help.
 */
function ended(child, limitMs) {
  const stopwatch = new Stopwatch(child.pid);
  let lateSince;
  const watch = setInterval(() => {
    stopwatch.look();
    if (lateSince === undefined && stopwatch.ms > limitMs) {
      lateSince = performance.now();
      signalGroup(child.pid, 'SIGINT');
    }
    if (performance.now() - lateSince > INTERRUPT_MS) signalGroup(child.pid, 'SIGKILL');
  }, 1000);
  return new Promise((resolve) => {
    child.once('close', (code) => {
      clearInterval(watch);
      signalGroup(child.pid, 'SIGKILL');
      resolve({ code, isLate: lateSince !== undefined, ms: stopwatch.ms });
    });
  });
}

/**
 * Measures the time of processes, without the time in which a busy machine gave them no processor. The result is at most the elapsed
 * time. The result is at least a quarter of the elapsed time, because tests also wait for other things than the processor.
 */
class Stopwatch {
  #beginMs = performance.now();
  #processorMs = 0;
  #session;

  constructor(session) {
    this.#session = session;
  }

  /** Records the processor time so far, which can no longer be read after the processes have ended. */
  look() {
    this.#processorMs = Math.max(this.#processorMs, processorMs(this.#session));
  }

  get ms() {
    const passedMs = performance.now() - this.#beginMs;
    return Math.min(passedMs, Math.max(this.#processorMs / PROCESSOR_SHARE, passedMs / 4));
  }
}

/** Returns the processor time of all processes in a session, including ended child processes. */
function processorMs(session) {
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const fields = statOf(pid);
    if (Number(fields?.[3]) === session) ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  }
  return ticks * 10;
}

/** Returns the fields of /proc/PID/stat after the program name (see proc(5)), or undefined if the process has ended. */
function statOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
  } catch {
    return undefined;
  }
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // The process group has already ended.
  }
}

function firstFailure() {
  try {
    const { testResults } = JSON.parse(readFileSync(REPORT, 'utf8'));
    const { name, message, assertionResults } = testResults.find(({ status }) => status === 'failed');
    const test = assertionResults.find(({ status }) => status === 'failed')?.fullName ?? message.split('\n')[0];
    return `${name.slice(DIR.length + 1)} > ${test}`;
  } catch {
    return 'no test: vitest itself failed';
  }
}
