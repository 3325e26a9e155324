// Coverage provider for vitest that writes the raw counts of V8 after each test file to the folder named by COVERAGE_DIR:
//   scripts/HASH.js    a module as run by the test process, with its source map
//   counts/N.json      { test, functions by script }: the counts of one test file
//   children/N/*.json  counts of programs started by the test file, as written by Node.js; children/N/test.txt names the test file
import { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { Session } from 'node:inspector';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

const dir = process.env.COVERAGE_DIR ?? '';
const own = join(dir, `worker-${process.pid}`);
const pids = join(dir, 'pids');
const PRELOAD = fileURLToPath(new URL('preload.cjs', import.meta.url));
/** Time limit for a program to write its counts before the program is killed. */
const WRITE_MS = 3000;
const isProduct = (url) =>
  /\/(?:packages|apps)\/[^/]+\/src\/.*\.ts$/.test(url) && !/\.(?:test|fixture|conformance)\.ts$/.test(url);

/** Hash of each module's script, by the module's path. */
const scripts = new Map();
let session;
let taken = 0;

/**
 * Stores the text of every module that runs. Test processes run modules with vm.runInThisContext, and V8's counts do not include the text
 * of a script.
 */
function keepScripts() {
  const run = vm.runInThisContext;
  vm.runInThisContext = (code, options) => {
    const path = options?.filename ?? '';
    if (isProduct(path)) {
      const hash = createHash('sha256').update(code).digest('hex').slice(0, 16);
      const file = join(dir, 'scripts', `${hash}.js`);
      if (!existsSync(file)) writeFileSync(file, code);
      scripts.set(path, hash);
    }
    return run(code, options);
  };
}

/** Makes programs write their counts before a test kills them. For tests, the kill only takes a fifth of a second longer. */
function writeBeforeKill() {
  const kill = process.kill.bind(process);
  process.kill = (pid, signal) => {
    if (isKill(signal)) askForCounts(pid, kill);
    return kill(pid, signal);
  };
  const killChild = ChildProcess.prototype.kill;
  ChildProcess.prototype.kill = function (signal) {
    if (isKill(signal) && this.pid !== undefined) askForCounts(this.pid, kill);
    return killChild.call(this, signal);
  };
}

const isKill = (signal) => signal === 'SIGKILL' || signal === 9;

/** Asks programs for their counts. As in kill(2), a negative `target` is a process group. */
function askForCounts(target, kill) {
  const asked = listening().filter((pid) => pid === target || groupOf(pid) === -target);
  for (const pid of asked) attempt(() => kill(pid, 'SIGUSR2'));
  const deadline = performance.now() + WRITE_MS;
  for (const pid of asked) {
    const written = join(pids, `${pid}.written`);
    while (!existsSync(written) && groupOf(pid) !== undefined && performance.now() < deadline) pause(10);
    rmSync(written, { force: true });
    rmSync(join(pids, String(pid)), { force: true });
  }
}

const listening = () =>
  readdirSync(pids)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Returns the process group of a running program, or undefined if the program has ended. */
function groupOf(pid) {
  const [state, , group] = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')) ?? ['Z'];
  return state === 'Z' ? undefined : Number(group);
}

const pause = (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function attempt(act) {
  try {
    return act();
  } catch {
    return undefined;
  }
}

function ask(method, params) {
  let answer;
  session.post(method, params, (error, result) => {
    if (error) throw new Error(error.message);
    answer = result;
  });
  return answer;
}

function startCounting() {
  for (const folder of ['scripts', 'counts', 'children', 'pids']) mkdirSync(join(dir, folder), { recursive: true });
  keepScripts();
  session = new Session();
  session.connect();
  ask('Profiler.enable');
  ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
}

function writeCounts(name, test) {
  const { result } = ask('Profiler.takePreciseCoverage');
  const modules = result
    .map(({ url, functions }) => ({ hash: scripts.get(url.replace(/^file:\/\//, '')), functions }))
    .filter(({ hash }) => hash !== undefined);
  writeFileSync(join(dir, 'counts', `${name}.json`), JSON.stringify({ test, modules }));
}

function startCoverage() {
  if (session) return;
  startCounting();
  writeBeforeKill();
  mkdirSync(own, { recursive: true });
  // Programs that tests start as a different user must be able to write here.
  for (const folder of [own, pids]) chmodSync(folder, 0o777);
  // Environment variables inherited by the programs that tests start.
  process.env.NODE_V8_COVERAGE = own;
  process.env.COVERAGE_PIDS = pids;
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --require ${PRELOAD}`.trim();
}

function takeCoverage() {
  taken++;
  const name = `${process.pid}-${taken}`;
  const test = relative(process.cwd(), globalThis.__vitest_worker__?.filepath ?? '');
  writeCounts(name, test);
  moveChildren(join(dir, 'children', name), test);
  return null;
}

/** Assigns the counts of ended programs to a test file. A program that ends after its test file is assigned to the next test file. */
function moveChildren(to, test) {
  const files = readdirSync(own);
  if (files.length === 0) return;
  mkdirSync(to);
  writeFileSync(join(to, 'test.txt'), test);
  for (const file of files) renameSync(join(own, file), join(to, file));
}

let options;
const provider = {
  name: 'branches',
  initialize: (vitest) => {
    options = vitest.config.coverage;
    startCounting();
  },
  resolveOptions: () => options,
  clean: () => {},
  onAfterSuiteRun: () => {},
  // The setup of a run, such as the database shared by the tests, runs in vitest's main process.
  generateCoverage: () => {
    writeCounts(String(process.pid), 'the set-up of a run');
    return {};
  },
  reportCoverage: () => {},
};

// vitest requires the provider as the default export of the module.
export default { getProvider: () => provider, startCoverage, takeCoverage, stopCoverage: () => {} };
