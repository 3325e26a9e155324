// docs/benchmarks-peers.md, written from the record alone.
import { FIGURES } from '../scenarios/figures.mjs';
import { ROWS } from './rows.mjs';
import { summarizeRow } from './summary.mjs';
import { judge, TARGETS } from './targets.mjs';

const isOurs = (path) => path.startsWith('ours');

/** @returns {string} Markdown */
export function renderPage(record) {
  const rows = ROWS.filter(({ name }) => roundsOf(record, name).length > 0);
  const parts = [
    renderHead(record),
    renderTargets(record),
    ...rows.map((row) => renderRow(row, record)),
    renderRest(record),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

const roundsOf = ({ rows }, name) => rows.find((row) => row.name === name)?.rounds ?? [];

function renderHead(record) {
  const { date, quick, seconds, machine, versions, runtimes } = record;
  const counts = record.rows.map(({ rounds }) => rounds.length);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const said = Object.entries(versions).filter(([, version]) => version !== null);
  const nodes = runtimes.map(({ version }) => version).join(' and ');
  return [
    '# Beside other tunnels',
    '',
    '![CPU of server and client together, ours and peers](benchmarks-peers.svg)',
    '',
    `Written by \`npm run bench:peers\` on ${date.slice(0, 10)}${quick ? ' (quick: it shows that everything works, no more)' : ''}; every round is in`,
    '[benchmarks-peers.json](benchmarks-peers.json). How to read it, and what each row is to a user: [benchmarks.md](benchmarks.md).',
    '',
    `- Machine: ${machine.cores} cores of ${machine.model}, ${machine.memoryGib} GiB, ${machine.system}, kernel ${machine.kernel} (${machine.architecture}); load before the run ${machine.loadBefore}.`,
    `- Versions: Node.js ${nodes}; ${said.map(([name, version]) => `${name} ${version}`).join(', ')}.`,
    `- ${least === most ? least : `${least} to ${most}`} ${most === 1 ? 'round' : 'rounds'} of ${seconds} s a measurement; a cell is the median and, in brackets, the range. CPU is that of both processes of a path, user and system. 1 GB = 10^9 bytes.`,
    '- Peers run with their defaults and log warnings alone; where they have a faster setting, it has a line of its own. All share one network and process namespace, one certificate (P-256) and two cores with the load.',
  ].join('\n');
}

function renderTargets(record) {
  const { runtimes } = record;
  const lines = TARGETS.map((target) => {
    const results = runtimes.map((runtime) => judge(target, record.rows, runtime));
    if (results.every((result) => result === null)) return null;
    return `| ${target.row} | ${target.path} | ${FIGURES[target.figure].title} | ${wordsOf(target)} | ${results.map(verdict).join(' | ')} |`;
  }).filter(Boolean);
  if (lines.length === 0) return '';
  const head = `| Row | Path | Figure | Target | ${runtimes.map(({ version }) => `Node.js ${version}`).join(' | ')} |`;
  return ['## What we mean to reach', '', head, `|---|---|---|---|${'---|'.repeat(runtimes.length)}`, ...lines].join(
    '\n',
  );
}

const wordsOf = ({ limits }) => limits.map(limitWords).join(', or ');

function limitWords({ atMost, atLeast, fromNode24, of, ofFirstNode }) {
  if (atLeast !== undefined) return `at least ${atLeast}`;
  const whom = ofFirstNode
    ? '× the first Node.js'
    : of && (of.length === 1 ? `× ${of[0]}` : '× the best of the others');
  const newer = fromNode24 === undefined ? '' : ` (${fromNode24} from Node.js 24 on)`;
  return [`at most ${atMost}`, whom].filter(Boolean).join(' ') + newer;
}

function verdict(result) {
  if (result === null) return '';
  const { reached, limits } = result;
  const shown = limits
    .map(({ than, measured }) => `${cell(measured, 2)}${than === null ? '' : ` × ${than}`}`)
    .join(', ');
  return `${shown} ${reached ? 'reached' : '**missed**'}`;
}

function renderRow(row, record) {
  const { name, title, meaning, figures, rank, yardstick } = row;
  const columns = figures.flatMap((key) => [
    { title: FIGURES[key].title, of: (path) => cell(path.figures[key], FIGURES[key].digits) },
    ...(key === rank && yardstick ? [{ title: `× ${yardstick}`, of: ({ ratio }) => cell(ratio, 2) }] : []),
  ]);
  const lines = summarizeRow(row, roundsOf(record, name)).map((path) => {
    const cells = columns.map(({ of }) => of(path)).join(' | ');
    return `| ${isOurs(path.path) ? `**${path.path}**` : path.path} | ${record.paths[path.path].carrier} | ${cells} |`;
  });
  return [
    `## ${title}`,
    '',
    `\`--scenario ${name}\`: ${meaning}.`,
    '',
    `| Path | Carrier | ${columns.map((column) => column.title).join(' | ')} |`,
    `|---|---|${'---|'.repeat(columns.length)}`,
    ...lines,
  ].join('\n');
}

/** What the paths are, and what is not in the tables. */
function renderRest({ paths, missing, failures }) {
  const notes = Object.entries(paths)
    .filter(([, { note }]) => note)
    .map(([name, { note }]) => `- \`${name}\`: ${note}.`);
  const absent = missing.map((line) => `- Not there: ${line}.`);
  const failed = failures.map(
    ({ row, path, message }) => `- Failed: ${path} in ${row}: ${message.replaceAll('|', '/')}.`,
  );
  const lines = [...notes, ...absent, ...failed];
  return lines.length === 0 ? '' : ['## Beside the tables', '', ...lines].join('\n');
}

function cell(value, digits) {
  if (value == null) return '';
  const text = (number) => number.toFixed(digits);
  const [median, min, max] = [value.median, value.min, value.max].map(text);
  return min === max ? median : `${median} (${min}..${max})`;
}
