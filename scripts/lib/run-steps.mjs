// Runs steps, shows the output of those that failed, and ends with the count alone.
import { spawn } from 'node:child_process';
import { ROOT } from './paths.mjs';

// Long steps say that they still live, for people and for CI systems that end silent jobs.
const STILL_RUNNING_EVERY_MS = 30_000;

const running = new Set();

/** What runs ends with us. */
export function stopOnSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      for (const child of running) child.kill(signal);
      process.exit(1);
    });
  }
}

const secondsSince = (start) => `${((performance.now() - start) / 1000).toFixed(1)} s`;

function runStep(step) {
  step.before?.();
  const start = performance.now();
  return new Promise((resolve) => {
    const chunks = [];
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, ...step.env };
    const child = spawn(step.command ?? process.execPath, step.args, {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    const stillRunning = setInterval(
      () => process.stdout.write(`    ${step.name} still running, ${secondsSince(start)}\n`),
      STILL_RUNNING_EVERY_MS,
    );
    const finish = (code) => {
      clearInterval(stillRunning);
      running.delete(child);
      resolve({ code, took: secondsSince(start), output: Buffer.concat(chunks).toString('utf8') });
    };
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    child.on('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`));
      finish(1);
    });
    child.on('close', (code) => finish(code ?? 1));
  });
}

/** The end of each of its steps: they run one after the other. */
function runLane(lane) {
  let before = Promise.resolve();
  return lane.map((step) => {
    before = before.then(() => runStep(step));
    return before;
  });
}

/** One group after the other. What is in a group, steps or lanes of steps, runs at the same time. */
export async function runSteps(groups) {
  const begin = performance.now();
  const all = groups.flat(2);
  let passed = 0;
  let failed = 0;
  for (const group of groups) {
    const lanes = group.map((lane) => [lane].flat());
    const ends = lanes.flatMap(runLane);
    for (const [index, step] of lanes.flat().entries()) {
      process.stdout.write(`[${all.indexOf(step) + 1}/${all.length}] ${step.name}\n`);
      const { code, took, output } = await ends[index];
      const [good, bad, skipped = 0] = step.count(code);
      passed += good;
      failed += bad;
      if (bad > 0) process.stdout.write(`${output.trimEnd()}\n`);
      const counts = [`${good} passed`, bad > 0 ? `${bad} FAILED` : '', skipped > 0 ? `${skipped} skipped` : ''];
      process.stdout.write(`    ${bad > 0 ? 'FAILED' : 'ok'}: ${counts.filter(Boolean).join(', ')} in ${took}\n`);
      for (const note of step.notes?.() ?? []) process.stdout.write(`    ${note}\n`);
    }
  }
  process.stdout.write(`all steps took ${secondsSince(begin)}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
}
