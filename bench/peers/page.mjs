// Renders docs/benchmarks-peers.md from the record only.
import { FIGURES } from '../scenarios/figures.mjs';
import { ROWS } from './rows.mjs';
import { summarizeRow } from './summary.mjs';
import { judge, speedOf, TARGETS } from './targets.mjs';

const isOurs = (path) => path.startsWith('ours');

/** @returns {string} Markdown */
export function renderPage(record, targets = TARGETS) {
  const rows = ROWS.filter(({ name }) => roundsOf(record, name).length > 0);
  const parts = [
    renderHead(record),
    renderTargets(record, targets),
    ...rows.map((row) => renderRow(row, record)),
    renderRest(record),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

const roundsOf = ({ rows }, name) => rows.find((row) => row.name === name)?.rounds ?? [];

function renderHead(record) {
  const { date, quick, seconds, machine, versions, runtimes } = record;
  const counts = record.rows.map(({ rounds }) => rounds.length);
  const least = Math.min(...counts);
  const most = Math.max(...counts);
  const said = Object.entries(versions).filter(([, version]) => version !== null);
  const nodes = runtimes.map(({ version }) => version).join(' and ');
  return [
    '# Hatchway compared with other tunnels',
    '',
    'Compare the CPU time and memory of Hatchway (`ours`) with rathole, bore, rustunnel, frp, chisel and OpenSSH, and with nginx and plain TLS as lower bounds.',
    '',
    '![CPU time of server and client together, Hatchway and other tunnels](benchmarks-peers.svg)',
    '',
    `Written by \`npm run bench:peers\` on ${date.slice(0, 10)}${quick ? ' (quick run: only shows that everything works)' : ''}. Every round is in`,
    '[benchmarks-peers.json](benchmarks-peers.json). [benchmarks.md](benchmarks.md) explains how to read the tables.',
    '',
    `- Machine: ${machine.cores} cores of ${machine.model}, ${machine.memoryGib} GiB, ${machine.system}, kernel ${machine.kernel} (${machine.architecture}); load before the run ${machine.loadBefore}.`,
    `- Versions: Node.js ${nodes}; ${said.map(([name, version]) => `${name} ${version}`).join(', ')}.`,
    `- ${least === most ? least : `${least} to ${most}`} ${most === 1 ? 'round' : 'rounds'} of ${seconds} s per measurement; a cell is the median, with the range in parentheses. CPU is user and system time of both processes of a path. 1 GB = 10^9 bytes.`,
    '- Other tunnels run with their defaults and log only warnings. Faster settings have a separate line. Every program shares the network and process namespace, a P-256 certificate, and two cores with the load generator.',
    '- `@26` after a path is the major version of Node.js; paths without a number run on the first version above.',
  ].join('\n');
}

function renderTargets(record, targets) {
  const { runtimes } = record;
  const judged = targets
    .map((target) => ({
      target,
      results: runtimes.map((runtime) => judge(target, record.rows, runtime)),
    }))
    .filter(({ results }) => results.some((result) => result !== null));
  if (judged.length === 0) return '';
  const lines = judged.map(
    ({ target, results }) => `| ${nameOf(target)} | ${wordsOf(target)} | ${results.map(verdict).join(' | ')} |`,
  );
  const reasons = judged
    .filter(({ target, results }) => target.why && results.some((result) => result?.reached === false))
    .map(({ target }) => `- ${nameOf(target).replaceAll(' | ', ', ')}: ${target.why}`);
  const head = `| Row | Path | Figure | Target | ${runtimes.map(({ version }) => `Node.js ${version}`).join(' | ')} |`;
  return [
    ...['## Targets', '', ...speedLines(speedOf(record.rows, runtimes), runtimes)],
    ...[head, `|---|---|---|---|${'---|'.repeat(runtimes.length)}`, ...lines],
    ...(reasons.length === 0 ? [] : ['', 'Reasons for missed targets:', '', ...reasons]),
  ].join('\n');
}

const nameOf = ({ row, path, figure }) => `${row} | ${path} | ${FIGURES[figure].title}`;

function speedLines(speed, runtimes) {
  if (speed === null) return [];
  const here = speed.here.map((ms, at) => `${ms.toFixed(0)} ms on Node.js ${runtimes[at].version}`).join(' and ');
  return [
    `Targets in ms and µs were set on a machine where \`node -e 0\` takes ${speed.target} ms. Here it takes ${here}.`,
    '',
  ];
}

const wordsOf = ({ limits }) => limits.map(limitWords).join(', or ');

function limitWords({ atMost, atLeast, fromNode24, ofFigure, ...limit }) {
  if (atLeast !== undefined) return `at least ${atLeast}`;
  const whom = ofFigure ? `× ${FIGURES[ofFigure].title}` : pathWords(limit);
  const newer = fromNode24 === undefined ? '' : ` (${fromNode24} from Node.js 24)`;
  return [`at most ${atMost}`, whom].filter(Boolean).join(' ') + newer;
}

function pathWords({ of, ofFirstNode }) {
  if (ofFirstNode) return '× the first Node.js';
  return of && (of.length === 1 ? `× ${of[0]}` : '× the best other path');
}

function verdict(result) {
  if (result === null) return '';
  const { reached, limits } = result;
  const shown = limits
    .map(({ than, measured }) => `${cell(measured, 2)}${than === null ? '' : ` × ${FIGURES[than]?.title ?? than}`}`)
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

/** Renders notes about the paths, and lists what is missing in the tables. */
function renderRest({ paths, missing, failures }) {
  const notes = Object.entries(paths)
    .filter(([, { note }]) => note)
    .map(([name, { note }]) => `- \`${name}\`: ${note}.`);
  const absent = missing.map((line) => `- Not measured: ${line}.`);
  const failed = failures.map(
    ({ row, path, message }) => `- Failed: ${path} in ${row}: ${message.replaceAll('|', '/')}.`,
  );
  const lines = [...notes, ...absent, ...failed];
  return lines.length === 0 ? '' : ['## Notes', '', ...lines].join('\n');
}

function cell(value, digits) {
  if (value == null) return '';
  const text = (number) => number.toFixed(digits);
  const [median, min, max] = [value.median, value.min, value.max].map(text);
  return min === max ? median : `${median} (${min}..${max})`;
}
