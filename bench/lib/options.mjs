// The command lines of the bench.
import { accessSync, constants, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { PATH_NAMES } from '../paths/index.mjs';

const ROUNDS = 3;
const ROUNDS_MAX = 50;

export class UsageError extends Error {}

const list = (texts) => (texts ?? []).flatMap((text) => text.split(',')).filter((text) => text !== '');

function read(args, options, positionals = false) {
  try {
    return parseArgs({ args, options, allowPositionals: positionals, strict: true });
  } catch (error) {
    throw new UsageError(error.message);
  }
}

const COMMON = {
  path: { type: 'string', multiple: true },
  node: { type: 'string' },
  quick: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
};

export function readBenchOptions(args) {
  const { values } = read(args, {
    ...COMMON,
    scenario: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    list: { type: 'boolean', default: false },
    json: { type: 'string' },
    baseline: { type: 'string' },
  });
  const rounds = values.rounds === undefined ? defaultRounds(values.quick) : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX) {
    throw new UsageError(`--rounds takes a whole number from 1 to ${ROUNDS_MAX}`);
  }
  const chosen = { scenarios: list(values.scenario), paths: pathsOf(values), node: nodeOf(values) };
  return { ...values, rounds, ...chosen, baseline: baselineOf(values) };
}

export function readProfileOptions(args) {
  const { values, positionals } = read(args, { ...COMMON, out: { type: 'string' } }, true);
  return { ...values, scenario: positionals[0], paths: pathsOf(values, ['ours']), node: nodeOf(values) };
}

export function readMicroOptions(args) {
  const { values, positionals } = read(args, { node: COMMON.node, help: COMMON.help }, true);
  return { ...values, words: positionals, node: nodeOf(values) };
}

const defaultRounds = (quick) => (quick ? 1 : ROUNDS);

function pathsOf({ path }, otherwise = PATH_NAMES) {
  const names = path === undefined ? otherwise : list(path);
  const unknown = names.filter((name) => !PATH_NAMES.includes(name));
  if (unknown.length > 0) throw new UsageError(`no path ${unknown.join(', ')}; there are ${PATH_NAMES.join(', ')}`);
  return names;
}

function baselineOf({ baseline }) {
  if (baseline === undefined) return undefined;
  if (!existsSync(join(baseline, 'apps/server/dist'))) {
    throw new UsageError(`--baseline: ${baseline} is no checkout that was built (npm run build)`);
  }
  return resolve(baseline);
}

function nodeOf({ node }) {
  if (node === undefined) return process.execPath;
  try {
    accessSync(node, constants.X_OK);
  } catch {
    throw new UsageError(`--node: ${node} ${existsSync(node) ? 'cannot be executed' : 'does not exist'}`);
  }
  return node;
}
