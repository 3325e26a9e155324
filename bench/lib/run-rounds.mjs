// Runs scenarios: in each round every path once, one after another, each with fresh processes.
// So a disturbance of the machine hits all paths alike, and ratios are taken inside a round.
import { USUAL_PATHS } from '../paths/index.mjs';
import { makeGround } from './ground.mjs';
import { Stage } from './stage.mjs';

/** @returns {Promise<object[]>} per scenario: { scenario, notes, rounds: [{ [path]: figures }] } */
export async function runRounds({ scenarios, paths, rounds, quick, node, tools, progress }) {
  const results = [];
  for (const scenario of scenarios) {
    const ground = await makeGround(scenario.network);
    const notes = [];
    if (scenario.network && ground.network.name === 'loopback') {
      notes.push(scenario.withoutNetwork);
      progress.say(`${scenario.name}: ${scenario.withoutNetwork}`);
    }
    const measured = [];
    try {
      for (let round = 1; round <= rounds; round++) {
        const figures = {};
        for (const path of pathsOf(scenario, paths)) {
          const what = `${scenario.name}, ${path.name}, round ${round}`;
          progress.begin(what);
          figures[path.name] = await measureOnce({ scenario, path, ground, quick, node, tools, what });
          progress.end(what, briefly(scenario, figures[path.name]));
        }
        measured.push(figures);
      }
    } finally {
      await ground.close();
    }
    results.push({ scenario, notes, rounds: measured });
  }
  return results;
}

export const pathsOf = (scenario, paths) =>
  paths.filter(({ name }) => (scenario.paths ?? USUAL_PATHS).includes(name.replace(/^before/, 'ours')));

async function measureOnce({ scenario, path, ground, quick, node, tools, what }) {
  const stage = new Stage({ ground, path, quick, tools });
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
