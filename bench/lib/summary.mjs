// Summarizes rounds: median and range of each figure, ratios to the yardstick within each round, and targets reached or missed.
import { FIGURES } from '../scenarios/figures.mjs';
import { spread } from './statistics.mjs';

const YARDSTICK = 'nginx';

export function summarize({ results, machine, versions, options, date }) {
  const nodeMajor = Number(/^v(\d+)/.exec(versions.node)?.[1] ?? 0);
  return {
    format: 1,
    date: date.toISOString(),
    quick: options.quick,
    rounds: options.rounds,
    machine,
    versions,
    scenarios: results.map((result) => summarizeScenario(result, options, nodeMajor)),
  };
}

function summarizeScenario({ scenario, notes, rounds }, { quick }, nodeMajor) {
  const names = Object.keys(rounds[0]);
  const paths = Object.fromEntries(names.map((name) => [name, summarizePath(scenario, name, rounds)]));
  return {
    name: scenario.name,
    title: (quick ? scenario.quickTitle : undefined) ?? scenario.title,
    notes,
    yardstick: yardstickOf(scenario),
    figures: scenario.figures,
    paths,
    targets: scenario.targets.filter(({ path }) => paths[path]).map((target) => judge(target, paths, nodeMajor)),
  };
}

const yardstickOf = ({ yardstick = YARDSTICK }) => yardstick;

function summarizePath(scenario, name, rounds) {
  const figures = {};
  const ratios = {};
  const yardstick = yardstickOf(scenario);
  for (const key of scenario.figures) {
    figures[key] = spread(rounds.map((round) => round[name][key]));
    if (!FIGURES[key].ratio || name === yardstick) continue;
    ratios[key] = spread(rounds.map((round) => round[name][key] / (round[yardstick]?.[key] ?? Number.NaN)));
  }
  return { figures, ratios, rounds: rounds.map((round) => round[name]) };
}

/** Compares a target with the measurements. `reached` is null if there is nothing to compare with. */
function judge(target, paths, nodeMajor) {
  const { path, figure } = target;
  const kind = ['ratioAtMost', 'atMost', 'atLeast'].find((name) => target[name] !== undefined);
  const limit = (nodeMajor >= 24 ? target[`${kind}FromNode24`] : undefined) ?? target[kind];
  const measured = kind === 'ratioAtMost' ? paths[path].ratios[figure] : paths[path].figures[figure];
  const isReached = (value) => (kind === 'atLeast' ? value >= limit : value <= limit);
  return { path, figure, kind, limit, measured, reached: measured && isReached(measured.median) };
}
