// npm run bench:profile -- SCENARIO: writes CPU profiles of edge and client for a scenario, and prints where their time went.
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { CACHE_DIR } from '../scripts/lib/paths.mjs';
import { leaveNothingBehind } from './lib/children.mjs';
import { selfTimes } from './lib/cpu-profile.mjs';
import { makeGround } from './lib/ground.mjs';
import { readProfileOptions, UsageError } from './lib/options.mjs';
import { Stage } from './lib/stage.mjs';
import { findWrk } from './lib/wrk.mjs';
import { choosePaths } from './paths/index.mjs';
import { chooseScenarios } from './scenarios/index.mjs';

const USAGE = `usage: npm run bench:profile -- SCENARIO [OPTIONS]
  --path ours-tls  which of ours, ours-tls; of p2p scenarios ours-relay, ours-direct; of platform scenarios platform, platform-mcp (ours)
  --quick          a short measurement
  --node PATH      the Node.js that runs edge and client
  --out DIR        where the .cpuprofile files go (.cache/bench/profiles)`;
const ROWS = 22;
/** Processes with a profile. In p2p scenarios the client is the publisher. */
const ROLES = ['edge', 'client', 'subscriber', 'server'];

async function profile({ scenario: name, paths: [pathName], quick, node, out }) {
  const [scenario, ...others] = chooseScenarios([name]);
  if (others.length > 0) throw new UsageError(`${name} begins more than one scenario`);
  if (!/^(ours|platform)/.test(pathName)) throw new UsageError('only paths of ours can be profiled');
  const folder = resolve(out ?? join(CACHE_DIR, 'bench/profiles'));
  const fileOf = (role) => join(folder, `${scenario.name}.${pathName}.${role}.cpuprofile`);
  mkdirSync(folder, { recursive: true });
  for (const role of ROLES) rmSync(fileOf(role), { force: true });
  const nodeArgs = Object.fromEntries(ROLES.map((role) => [role, profileArgs(folder, fileOf(role))]));
  const tools = { wrk: findWrk() };
  for (const tool of scenario.needs ?? []) if (tools[tool].missing) throw new Error(tools[tool].missing);
  const figures = await measure({ scenario, path: choosePaths([pathName]).paths[0], quick, node, nodeArgs, tools });
  const { window, ...shown } = figures;
  for (const [key, value] of Object.entries(shown)) process.stdout.write(`${key} ${Number(value.toPrecision(4))}\n`);
  if (window === undefined) process.stdout.write('this scenario measures memory: the tables are of the whole run\n');
  const all = { beginUs: 0, endUs: Number.MAX_SAFE_INTEGER };
  for (const role of ROLES) if (existsSync(fileOf(role))) printTable(role, fileOf(role), window ?? all);
}

const profileArgs = (folder, file) => [
  ...['--cpu-prof', '--cpu-prof-interval', '500', '--cpu-prof-dir', folder],
  ...['--cpu-prof-name', relative(folder, file)],
];

async function measure({ scenario, path, quick, node, nodeArgs, tools }) {
  const ground = await makeGround(scenario.network);
  const stage = new Stage({ ground, path, quick, tools });
  try {
    await stage.open({ node, nodeArgs, protocol: scenario.protocol });
    return await scenario.measure(stage);
  } finally {
    // SIGTERM, because Node.js writes the profile only if it ends in order.
    await stage.close('SIGTERM');
    await ground.close();
  }
}

function printTable(role, file, window) {
  const { busyMs, windowMs, functions } = selfTimes(file, window);
  const busy = `${busyMs.toFixed(0)} ms busy of ${windowMs < 1e9 ? `${windowMs.toFixed(0)} ms` : 'the whole run'}`;
  process.stdout.write(`\n${role}: ${busy}   ${relative(process.cwd(), file)}\n`);
  const kinds = Object.entries(byKind(functions)).map(
    ([kind, ms]) => `${kind} ${((100 * ms) / Math.max(busyMs, 1)).toFixed(0)} %`,
  );
  process.stdout.write(`  ${kinds.join(', ')}; without reads by kernel and TLS, which a profile takes for idle\n`);
  for (const { name, place, selfMs } of functions.slice(0, ROWS)) {
    const share = `${((100 * selfMs) / busyMs).toFixed(1)} %`.padStart(7);
    process.stdout.write(`${selfMs.toFixed(0).padStart(6)} ms ${share}  ${name.slice(0, 28).padEnd(28)} ${place}\n`);
  }
}

function byKind(functions) {
  const sums = { 'socket writes': 0, 'our JavaScript': 0, 'that of Node.js': 0, 'garbage collection': 0, other: 0 };
  for (const { name, place, selfMs } of functions) sums[kindOf(name, place)] += selfMs;
  return sums;
}

function kindOf(name, place) {
  if (/^write(?:v|Buffer|\w+String)$/.test(name) && place === '') return 'socket writes';
  if (/^(?:packages|apps)\//.test(place)) return 'our JavaScript';
  if (place.startsWith('node:')) return 'that of Node.js';
  return name === '(garbage collector)' ? 'garbage collection' : 'other';
}

async function main(args) {
  try {
    const options = readProfileOptions(args);
    if (options.help) process.stdout.write(`${USAGE}\n`);
    else if (options.scenario === undefined)
      throw new UsageError('which scenario? `npm run bench -- --list` names them');
    else await profile(options);
    return 0;
  } catch (error) {
    process.stderr.write(`bench:profile failed: ${error.message}\n`);
    if (error instanceof UsageError) process.stderr.write(`${USAGE}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

leaveNothingBehind();
process.exit(await main(process.argv.slice(2)));
