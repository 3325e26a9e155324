// A coverage provider of vitest's that writes the raw counts of V8 after each test file, into the folder that COVERAGE_DIR names:
//   scripts/HASH.js    a module as the test process ran it, with its source map
//   counts/N.json      { test, functions by script }: the counts of one test file
//   children/N/*.json  the same from programs that the test file started, as Node.js writes them; children/N/test.txt names the file
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
/** How long a program may take to write its counts before it is killed. */
const WRITE_MS = 3000;
const isProduct = (url) =>
  /\/(?:packages|apps)\/[^/]+\/src\/.*\.ts$/.test(url) && !/\.(?:test|fixture|conformance)\.ts$/.test(url);

/** The hash of each module's script, by its path. */
const scripts = new Map();
let session;
let taken = 0;

/** Test processes run modules by this function of Node.js; V8 does not tell the text of a script with its counts. */
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

/** Programs that a test kills write their counts first. Tests only see that the kill takes a fifth of a second. */
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

/** A negative number is a process group, as kill(2) has it. */
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

/** The process group of a program that runs; undefined when it has ended. */
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
  // For programs that tests start as another user.
  for (const folder of [own, pids]) chmodSync(folder, 0o777);
  // Programs that tests start take this along.
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

/** A program that ends after its test file is counted for the next one. */
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
  // The set-up of a run, such as the database that its tests share, runs in vitest's own process.
  generateCoverage: () => {
    writeCounts(String(process.pid), 'the set-up of a run');
    return {};
  },
  reportCoverage: () => {},
};

// vitest takes a provider only as the default of its module.
export default { getProvider: () => provider, startCoverage, takeCoverage, stopCoverage: () => {} };
