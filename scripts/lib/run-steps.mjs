// Runs steps, shows the output of failed steps, and ends with a table of times and the counts only.
import { spawn } from 'node:child_process';
import { endOfRun } from './budgets.mjs';
import { ROOT } from './paths.mjs';
import { lostSpeed, readProcessorUse, takenByOthers } from './processor-use.mjs';

// Interval of messages from long steps, for people, and for CI systems that cancel silent jobs.
const STILL_RUNNING_EVERY_MS = 30_000;

const running = new Set();

/** Stops the running steps when a signal ends the process. */
export function stopOnSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      for (const child of running) child.kill(signal);
      process.exit(1);
    });
  }
}

const inSeconds = (seconds) => `${seconds.toFixed(1)} s`;

/** Starts a measurement. `end` returns the elapsed seconds, and the share of the processor used by other programs. */
function startMeasuring() {
  const start = performance.now();
  const use = readProcessorUse();
  const seconds = () => (performance.now() - start) / 1000;
  return { seconds, end: () => ({ seconds: seconds(), othersShare: takenByOthers(use, readProcessorUse()) }) };
}

/** Runs a step. With `isLive`, the output is shown while the step runs. */
function runStep(step, isLive) {
  step.before?.();
  const measuring = startMeasuring();
  return new Promise((resolve) => {
    const chunks = [];
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, ...step.env };
    const child = spawn(step.command ?? process.execPath, step.args, {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    const stillRunning = setInterval(() => {
      if (!isLive) process.stdout.write(`    ${step.name} still running, ${inSeconds(measuring.seconds())}\n`);
    }, STILL_RUNNING_EVERY_MS);
    const finish = (code) => {
      clearInterval(stillRunning);
      running.delete(child);
      resolve({ code, ...measuring.end(), output: Buffer.concat(chunks).toString('utf8') });
    };
    const take = (chunk) => {
      chunks.push(chunk);
      if (isLive) process.stdout.write(chunk);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`));
      finish(1);
    });
    child.on('close', (code) => finish(code ?? 1));
  });
}

/** Runs the steps of a lane in sequence. Returns a promise for the end of every step. */
function runLane(lane, isAlone) {
  let before = Promise.resolve();
  return lane.map((step) => {
    before = before.then(() => runStep(step, isAlone && step.isShown === true));
    return before;
  });
}

/**
 * Runs groups one after another. The steps of a group, or its lanes of steps, run in parallel. A step that greatly exceeds its
 * `budgetSeconds` counts as one more failure. The `budgetSeconds` of all steps together is only reported. The output of a step with
 * `isShown` is shown even without failures: immediately or, if another step runs in parallel, at the end of the step.
 */
export async function runSteps(groups, budgetSeconds) {
  const lostAtStart = lostSpeed();
  const measuring = startMeasuring();
  const all = groups.flat(2);
  const times = [];
  let passed = 0;
  let failed = 0;
  for (const group of groups) {
    const lanes = group.map((lane) => [lane].flat());
    const isAlone = lanes.length === 1;
    const ends = lanes.flatMap((lane) => runLane(lane, isAlone));
    for (const [index, step] of lanes.flat().entries()) {
      process.stdout.write(`[${all.indexOf(step) + 1}/${all.length}] ${step.name}\n`);
      const { code, seconds, othersShare, output } = await ends[index];
      const [good, bad, skipped = 0] = step.count(code, output);
      times.push({ name: step.name, seconds, budgetSeconds: step.budgetSeconds, othersShare });
      passed += good;
      failed += bad;
      if (step.isShown ? !isAlone : bad > 0) process.stdout.write(`${output.trimEnd()}\n`);
      const counts = [`${good} passed`, bad > 0 ? `${bad} FAILED` : '', skipped > 0 ? `${skipped} skipped` : ''];
      const verdict = bad > 0 ? 'FAILED' : 'ok';
      process.stdout.write(`    ${verdict}: ${counts.filter(Boolean).join(', ')} in ${inSeconds(seconds)}\n`);
      for (const note of step.notes?.(output) ?? []) process.stdout.write(`    ${note}\n`);
    }
  }
  if (times.length > 1 || budgetSeconds !== undefined)
    times.push({ name: 'all', isSum: true, ...measuring.end(), budgetSeconds });
  // If the processor is slower than usual, the missing share of its speed counts like time used by other programs.
  const lost = Math.max(lostAtStart, lostSpeed());
  const judged = times.map((time) => ({ ...time, othersShare: withLost(time.othersShare, lost) }));
  const { text, code } = endOfRun({ times: judged, passed, failed });
  process.stdout.write(text);
  return code;
}

const withLost = (othersShare, lost) => (othersShare === null ? null : Math.max(othersShare, lost));
