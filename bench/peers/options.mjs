// The command line of `npm run bench:peers`.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { UsageError } from '../lib/options.mjs';

const ROUNDS = 5;
const ROUNDS_MAX = 50;
const SECONDS = 2;
const SECONDS_MAX = 60;

export const USAGE = `usage: npm run bench:peers [-- OPTIONS]
  --scenario A,B   only these rows; the beginning of a name means all that begin so
  --path A,B       only these paths
  --rounds N       how often each path is measured (${ROUNDS})
  --seconds S      how long each time (${SECONDS})
  --node A,B       what runs edge and client, one after the other: files, or \`node\` for this one; one column each in the table of targets
  --add            adds the rounds to those of the last run of the same build on the same machine: a long run in pieces
  --quick          one round of short measurements, 300 idle connections: shows that everything works
  --list           rows and paths
A result that has every row of every path becomes docs/benchmarks-peers.md, .json and .svg; any other one lies in .cache/bench.`;

const list = (texts) => (texts ?? []).flatMap((text) => text.split(',')).filter((text) => text !== '');

function wholeNumber(name, text, { otherwise, most }) {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  throw new UsageError(`--${name} takes a whole number from 1 to ${most}`);
}

function parse(args) {
  try {
    const text = { type: 'string' };
    const many = { type: 'string', multiple: true };
    const flag = { type: 'boolean', default: false };
    const options = { scenario: many, path: many, node: many, rounds: text, seconds: text };
    return parseArgs({
      args,
      options: { ...options, add: flag, quick: flag, list: flag, help: { ...flag, short: 'h' } },
    });
  } catch (error) {
    throw new UsageError(error.message);
  }
}

/** @param {{ rowNames: string[], pathNames: string[] }} known */
export function readPeersOptions(args, { rowNames, pathNames }) {
  const { values } = parse(args);
  const { add, quick, help } = values;
  const rows = rowsOf(list(values.scenario), rowNames);
  const paths = list(values.path);
  const unknown = paths.filter((name) => !pathNames.includes(name));
  if (unknown.length > 0) throw new UsageError(`no path ${unknown.join(', ')}; see --list`);
  const rounds = wholeNumber('rounds', values.rounds, { otherwise: quick ? 1 : ROUNDS, most: ROUNDS_MAX });
  const seconds = wholeNumber('seconds', values.seconds, { otherwise: quick ? 1 : SECONDS, most: SECONDS_MAX });
  return { rows, paths, rounds, seconds, nodes: list(values.node), add, quick, list: values.list, help };
}

function rowsOf(names, known) {
  const unknown = names.filter((name) => !known.some((row) => row.startsWith(name)));
  if (unknown.length > 0) throw new UsageError(`no row begins with ${unknown.join(', ')}; see --list`);
  return known.filter((row) => names.length === 0 || names.some((name) => row.startsWith(name)));
}

/**
 * Returns the Node.js versions for our paths. The paths of the first version have no suffix; the others carry the major version, or the
 * full version if two have the same major version.
 */
export function runtimesOf(files, versionOf = askVersion) {
  const asked = (files.length === 0 ? ['node'] : files).map((file) => (file === 'node' ? process.execPath : file));
  const found = asked.map((node) => ({ node, version: versionOf(node) }));
  const broken = found.find(({ version }) => version === null);
  if (broken) throw new UsageError(`--node: ${broken.node} is no Node.js that can be run`);
  const majors = found.map(({ version }) => version.split('.')[0]);
  return found.map(({ node, version }, at) => {
    const isAlone = majors.filter((major) => major === majors[at]).length === 1;
    return { node, version, major: Number(majors[at]), suffix: at === 0 ? '' : `@${isAlone ? majors[at] : version}` };
  });
}

const askVersion = (node) =>
  /^v(\d+\.\d+\.\d+)/.exec(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? null;
