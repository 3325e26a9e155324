// The frame of every script in tests/tools: options, progress output, a time limit, and a verdict as the last line.
import { spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { leaveNothingBehind } from '../../../bench/lib/children.mjs';
import { ROOT } from '../../../scripts/lib/paths.mjs';

class UsageError extends Error {}

/**
 * @param {{ name: string, usage: string, options: Record<string, number | boolean>, limitSecs: (values: object) => number, needsBuild?: boolean }} what
 * `options` are the flags with their defaults; numbers are whole and above zero. `limitSecs` returns the time limit of the run.
 * `needsBuild`: whether the script runs our executables; true by default.
 * @param {(tools: { values: object, say: (line: string) => void, check: (isRight: boolean, what: string) => void }) => Promise<string>} main
 * returns the text after `ok:`. A failed check makes the run fail, but the run continues.
 */
export async function runScript({ name, usage, options, limitSecs, needsBuild = true }, main) {
  leaveNothingBehind();
  const wrong = [];
  const check = (isRight, what) => {
    say(`${isRight ? 'right' : 'WRONG'}  ${what}`);
    if (!isRight) wrong.push(what);
  };
  try {
    const values = readOptions(options, usage);
    if (needsBuild) build();
    giveUpAfter(name, limitSecs(values));
    sayIfBusy();
    const summary = await main({ values, say, check });
    finish(wrong.length === 0 ? `ok: ${name}: ${summary}` : `FAILED: ${name}: ${wrong.join('; ')}`, wrong.length > 0);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n${usage}\n`);
      process.exit(2);
    }
    process.stderr.write(`${error.stack}\n`);
    finish(`FAILED: ${name}: ${[...wrong, error.message.split('\n')[0]].join('; ')}`, true);
  }
}

const startedMs = Date.now();

function say(line) {
  const seconds = Math.round((Date.now() - startedMs) / 1000);
  process.stdout.write(`${String(seconds).padStart(4)} s  ${line}\n`);
}

/** Prints a note on a busy machine, because durations depend on its load. */
function sayIfBusy() {
  const [load] = loadavg();
  const cores = availableParallelism();
  if (load > cores) say(`the machine is busy: load ${load.toFixed(1)} on ${cores} cores`);
}

function finish(line, isFailure) {
  process.stdout.write(`${line}\n`, () => process.exit(isFailure ? 1 : 0));
}

function giveUpAfter(name, seconds) {
  const late = () => finish(`FAILED: ${name}: not over after ${seconds} s`, true);
  setTimeout(late, seconds * 1000).unref();
}

function readOptions(options, usage) {
  const flags = Object.entries(options).map(([flag, value]) => [
    flag,
    { type: typeof value === 'boolean' ? 'boolean' : 'string' },
  ]);
  let values;
  try {
    ({ values } = parseArgs({ options: { ...Object.fromEntries(flags), help: { type: 'boolean', short: 'h' } } }));
  } catch (error) {
    throw new UsageError(error.message);
  }
  if (values.help) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  return Object.fromEntries(
    Object.entries(options).map(([flag, usual]) => [flag, valueOf(flag, values[flag] ?? usual, usual)]),
  );
}

function valueOf(flag, given, usual) {
  if (typeof usual === 'boolean') return given;
  const number = Number(given);
  if (!Number.isInteger(number) || number < 1) throw new UsageError(`--${flag} takes a whole number above zero`);
  return number;
}

/** Builds the executables, so that the script tests the current sources. */
function build() {
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/ensure.mjs'), 'build'], {
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error('the executables could not be built');
}
