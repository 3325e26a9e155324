// A copy of the checkout below .cache, in which files may be broken: tracked files are copied, the installed packages linked.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CACHE_DIR, ROOT } from '../paths.mjs';

const DIR = join(CACHE_DIR, 'mutants');
const REPORT = join(CACHE_DIR, 'mutant.json');

/** Of two cores, what tests use of the time in which they run. */
const PROCESSOR_SHARE = 0.8;
const INTERRUPT_MS = 10_000;

/** Tests near the broken file first: they find the fault soonest. */
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
    // Hard links: a copy of half a gigabyte would take longer than the tests.
    for (const folder of installed.split('\n').filter(Boolean))
      execFileSync('cp', ['-al', folder, join(DIR, folder)], { cwd: ROOT });
    writeFileSync(join(DIR, 'mutants.config.ts'), CONFIG);
  }

  read(file) {
    return readFileSync(join(ROOT, file), 'utf8');
  }

  /** Runs `act` while the file has this text. */
  async withText(file, text, act) {
    writeFileSync(join(DIR, file), text);
    try {
      return await act();
    } finally {
      writeFileSync(join(DIR, file), this.read(file));
    }
  }

  /**
   * Runs these tests up to the first that fails. Times are those of a machine that has nothing else to do: see `Stopwatch`.
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

/** Its exit code. A run that is late is interrupted, so that it stops its servers, and killed when that does not help. */
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
 * The time that processes take, without the time in which a busy machine gave them no processor: at most as much as passes, at
 * least a quarter of it, because tests also wait for something else.
 */
class Stopwatch {
  #beginMs = performance.now();
  #processorMs = 0;
  #session;

  constructor(session) {
    this.#session = session;
  }

  /** What processes have used cannot be told when they have ended. */
  look() {
    this.#processorMs = Math.max(this.#processorMs, processorMs(this.#session));
  }

  get ms() {
    const passedMs = performance.now() - this.#beginMs;
    return Math.min(passedMs, Math.max(this.#processorMs / PROCESSOR_SHARE, passedMs / 4));
  }
}

/** The processor time of all processes in a session, and of their children that have ended. */
function processorMs(session) {
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const fields = statOf(pid);
    if (Number(fields?.[3]) === session) ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  }
  return ticks * 10;
}

/** The fields of proc(5) behind the name of the program, or undefined when the process is gone. */
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
    // It has ended.
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
