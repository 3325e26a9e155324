// Renders the results of `npm run bench` as Markdown.
import { baselineOf } from '../paths/index.mjs';
import { FIGURES } from '../scenarios/figures.mjs';
import { spread } from './statistics.mjs';

export function renderMarkdown(summary) {
  const parts = [renderHead(summary), renderTargets(summary), ...summary.scenarios.map(renderScenario)];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

/** Renders the ratios between our paths and the same paths of an earlier build within each round, that is, the cost of a change. */
export function renderComparison({ scenarios }) {
  const rows = scenarios.flatMap(({ name, figures, paths }) =>
    Object.keys(paths)
      .filter((path) => paths[baselineOf(path)] && baselineOf(path) !== path)
      .flatMap((path) =>
        figures
          .filter((key) => FIGURES[key].ratio)
          .map((key) => {
            const before = paths[baselineOf(path)].rounds;
            const ratios = paths[path].rounds.map((round, at) => round[key] / before[at][key]);
            return `| ${name} | ${path} | ${FIGURES[key].title} | ${cell(spread(ratios), 3)} |`;
          }),
      ),
  );
  return `### Compared with the baseline\n\n| Scenario | Path | Figure | × before |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

function renderHead({ date, quick, rounds, machine, versions }) {
  const nginx = versions.nginx === null ? 'nginx missing: no ratios' : `nginx ${versions.nginx}`;
  const wrk = versions.wrk == null ? '' : `, wrk ${versions.wrk}`;
  const load = versions.load === versions.node ? '' : `, load and origin on Node.js ${versions.load}`;
  return [
    '## Results',
    '',
    `- Date: ${date.slice(0, 10)}${quick ? ' (quick run, rough figures)' : ''}.`,
    `- Machine: ${machine.cores} cores of ${machine.model}, ${machine.memoryGib} GiB, ${machine.system}, kernel ${machine.kernel} (${machine.architecture}); load before the run ${machine.loadBefore}.`,
    `- Versions: ours ${versions.ours}, Node.js ${versions.node}${load}, ${nginx}${wrk}.`,
    `- ${rounds === 1 ? '1 round' : `${rounds} rounds`}; a cell is the median, with the range in parentheses. 1 MB = 10^6 bytes, 1 GB = 10^9, 1 KB = 1000.`,
  ].join('\n');
}

function renderTargets({ scenarios }) {
  const rows = scenarios.flatMap(({ name, targets, yardstick = 'nginx' }) =>
    targets.map(({ path, figure, kind, limit, measured, reached }) => {
      const unit = kind === 'ratioAtMost' ? ` × ${yardstick}` : '';
      const said = { true: 'reached', false: '**missed**', null: 'unknown' }[String(reached)];
      const value = cell(measured, kind === 'ratioAtMost' ? 2 : FIGURES[figure].digits);
      const least = kind === 'atLeast' ? 'at least ' : '';
      return `| ${name} | ${path} | ${FIGURES[figure].title} | ${least}${limit}${unit} | ${value} | ${said} |`;
    }),
  );
  if (rows.length === 0) return '';
  const head = '| Scenario | Path | Figure | At most | Measured | |\n|---|---|---|---|---|---|';
  return `### Targets\n\n${head}\n${rows.join('\n')}`;
}

function renderScenario({ name, title, notes, figures, paths, yardstick = 'nginx' }) {
  const columns = figures.flatMap((key) => [
    { title: FIGURES[key].title, of: (path) => cell(path.figures[key], FIGURES[key].digits) },
    ...(FIGURES[key].ratio ? [{ title: `× ${yardstick}`, of: (path) => cell(path.ratios[key], 2) }] : []),
  ]);
  const rows = Object.entries(paths).map(
    ([path, value]) => `| ${path} | ${columns.map(({ of }) => of(value)).join(' | ')} |`,
  );
  return [
    `### ${title}`,
    '',
    `\`--scenario ${name}\`${notes.map((note) => `; ${note}`).join('')}`,
    '',
    `| Path | ${columns.map((column) => column.title).join(' | ')} |`,
    `|---|${columns.map(() => '---|').join('')}`,
    ...rows,
  ].join('\n');
}

function cell(value, digits) {
  if (value == null) return '';
  const text = (number) => number.toFixed(digits);
  return value.min === value.max
    ? text(value.median)
    : `${text(value.median)} (${text(value.min)}..${text(value.max)})`;
}
