// Runs scenarios. In each round every path runs once, one after another, each with new processes. A disturbance of the machine thus
// affects all paths alike, and ratios are taken within a round.
import { pathOfBaseline, USUAL_PATHS } from '../paths/index.mjs';
import { makeGround } from './ground.mjs';
import { Stage } from './stage.mjs';

/**
 * With `onFailure(scenario, path, error)`, a failed measurement does not fail the run: the round continues in a renewed environment.
 * `onScenario(results)` is called after each scenario with all results so far, because a run of an hour can be interrupted.
 * @returns {Promise<object[]>} per scenario: { scenario, notes, rounds: [{ [path]: figures }] }
 */
export async function runRounds({
  scenarios,
  paths,
  rounds,
  groundOf = makeGround,
  onFailure,
  onScenario,
  progress,
  ...settings
}) {
  const results = [];
  for (const scenario of scenarios) {
    const ground = await groundOf(scenario.network);
    const notes = [];
    if (scenario.network && ground.network.name === 'loopback') {
      notes.push(scenario.withoutNetwork);
      progress.say(`${scenario.name}: ${scenario.withoutNetwork}`);
    }
    const measured = [];
    try {
      for (let round = 1; round <= rounds; round++) {
        const chosen = inTurn(pathsOf(scenario, paths), round);
        measured.push(await runRound({ ...settings, scenario, paths: chosen, round, ground, onFailure, progress }));
      }
    } finally {
      await ground.close();
    }
    results.push({ scenario, notes, rounds: measured });
    onScenario?.(results);
  }
  return results;
}

async function runRound({ paths, round, onFailure, progress, ...settings }) {
  const { scenario } = settings;
  const figures = {};
  for (const path of paths) {
    const what = `${scenario.name}, ${path.name}, round ${round}`;
    progress.begin(what);
    try {
      figures[path.name] = await measureOnce({ ...settings, path, what });
      progress.end(what, briefly(scenario, figures[path.name]));
    } catch (error) {
      if (onFailure === undefined) throw error;
      onFailure(scenario, path, error);
      await settings.ground.renew();
      progress.end(what, `failed: ${error.message.split('\n')[0].slice(0, 300)}`);
    }
  }
  return figures;
}

export const pathsOf = (scenario, paths) =>
  paths.filter(({ name }) => (scenario.paths ?? USUAL_PATHS).includes(pathOfBaseline(name)));

/** Reverses the order in every second round, so that no path always follows the same other path. */
const inTurn = (paths, round) => (round % 2 === 1 ? paths : [...paths].reverse());

async function measureOnce({ scenario, path, node, what, ...settings }) {
  const stage = new Stage({ ...settings, path });
  try {
    await stage.open({ node, protocol: scenario.protocol });
    const { window: _, ...figures } = await scenario.measure(stage);
    return figures;
  } catch (error) {
    throw new Error(`${what}: ${error.message}`, { cause: error });
  } finally {
    await stage.close();
  }
}

const briefly = (scenario, figures) =>
  scenario.figures
    .slice(0, 2)
    .filter((key) => Number.isFinite(figures[key]))
    .map((key) => `${key} ${Number(figures[key].toPrecision(3))}`)
    .join(', ');
