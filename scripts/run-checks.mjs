// Runs the checks (`all`, or `fast` without system tests), shows the output of what failed, and ends with the count alone.
import { spawn } from 'node:child_process';
import { ROOT } from './lib/paths.mjs';
import { STEPS } from './lib/steps.mjs';

// Long steps say that they still live, for people and for CI systems that end silent jobs.
const STILL_RUNNING_EVERY_MS = 30_000;

let current;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    current?.kill(signal);
    process.exit(1);
  });
}

const secondsSince = (start) => `${((performance.now() - start) / 1000).toFixed(1)} s`;

function runStep(step, start) {
  return new Promise((resolve) => {
    const chunks = [];
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };
    const child = spawn(process.execPath, step.args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    current = child;
    const stillRunning = setInterval(
      () => process.stdout.write(`    ${step.name} still running, ${secondsSince(start)}\n`),
      STILL_RUNNING_EVERY_MS,
    );
    const finish = (code) => {
      clearInterval(stillRunning);
      current = undefined;
      resolve({ code, output: Buffer.concat(chunks).toString('utf8') });
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

async function main(which) {
  const steps = STEPS[which];
  if (!steps) {
    process.stderr.write('usage: node scripts/run-checks.mjs all|fast\n');
    return 2;
  }
  const begin = performance.now();
  let passed = 0;
  let failed = 0;
  for (const [index, step] of steps.entries()) {
    const start = performance.now();
    process.stdout.write(`[${index + 1}/${steps.length}] ${step.name}\n`);
    step.before?.();
    const { code, output } = await runStep(step, start);
    const [good, bad, skipped = 0] = step.count(code);
    passed += good;
    failed += bad;
    if (bad > 0) process.stdout.write(`${output.trimEnd()}\n`);
    const note = step.note?.() ?? '';
    if (note !== '') process.stdout.write(`    ${note}\n`);
    const counts = [`${good} passed`, bad > 0 ? `${bad} FAILED` : '', skipped > 0 ? `${skipped} skipped` : ''];
    process.stdout.write(
      `    ${bad > 0 ? 'FAILED' : 'ok'}: ${counts.filter(Boolean).join(', ')} in ${secondsSince(start)}\n`,
    );
  }
  process.stdout.write(`all steps took ${secondsSince(begin)}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main(process.argv[2]);
