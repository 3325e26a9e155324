// npm run bench:peers: measures Hatchway beside other tunnels in a single run on this machine, and writes a page with the cost of each.
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { keepCompiledCode } from '../scripts/lib/compiled-code.mjs';
import { ROOT } from '../scripts/lib/paths.mjs';
import { leaveNothingBehind } from './lib/children.mjs';
import { describeMachine, describeVersions } from './lib/machine.mjs';
import { UsageError } from './lib/options.mjs';
import { Progress } from './lib/progress.mjs';
import { pathsOf, runRounds } from './lib/run-rounds.mjs';
import { findWrk } from './lib/wrk.mjs';
import { findNginx } from './paths/nginx.mjs';
import { isInside, runInside, settleInside, whyNoNamespaces } from './peers/namespaces.mjs';
import { compileLoad, NativeGround } from './peers/native-load.mjs';
import { readPeersOptions, runtimesOf, USAGE } from './peers/options.mjs';
import { renderPage } from './peers/page.mjs';
import { choosePeerPaths, PATH_NAMES, programsOf } from './peers/paths/index.mjs';
import { obtainPeers, peerVersions, systemVersions } from './peers/programs.mjs';
import { buildId, isWhole, joinRecords, keepRecord, lastRecord, makeRecord, writeRecord } from './peers/record.mjs';
import { ROWS } from './peers/rows.mjs';

const say = (line) => process.stderr.write(`${line}\n`);

const describePath = ({ name, protocol, carrier, note = null }) => [name, { protocol, carrier, note }];

async function measure(options, command) {
  leaveNothingBehind();
  const runtimes = runtimesOf(options.nodes);
  const tools = { wrk: findWrk() };
  const { paths, missing } = choosePeerPaths(options.paths, runtimes);
  const chosen = ROWS.filter(({ name }) => options.rows.includes(name));
  const rows = chosen
    .filter(({ needs = [] }) => needs.every((tool) => !tools[tool].missing))
    .map((row) => ({ ...row, paths: paths.filter(row.takes).map(({ name }) => name) }));
  const lines = [...(rows.length < chosen.length ? [tools.wrk.missing] : []), ...missing];
  for (const line of lines) say(line);
  const machine = describeMachine();
  const { ours, nginx, wrk } = describeVersions({ node: process.execPath, nginx: findNginx(), wrk: tools.wrk });
  const run = {
    date: new Date().toISOString(),
    commands: [command],
    quick: options.quick,
    seconds: options.seconds,
    machine,
    build: buildId(),
    versions: { ours, ...peerVersions(), nginx, ...systemVersions(), wrk },
    runtimes: runtimes.map(({ version, major, suffix }) => ({ version, major, suffix })),
    paths: Object.fromEntries(paths.map(describePath)),
    missing: lines,
    failures: [],
  };
  const earlier = options.add ? lastRecord() : null;
  // Checks that the run can be added, before hours are spent on it.
  joinRecords(earlier, makeRecord(run, []));
  const progress = new Progress(options.rounds * rows.reduce((sum, row) => sum + pathsOf(row, paths).length, 0));
  const results = await runRounds({
    scenarios: rows,
    paths,
    rounds: options.rounds,
    quick: options.quick,
    seconds: options.seconds,
    tools,
    progress,
    groundOf: () => new NativeGround().start(),
    // An interrupted run can be continued with `--add --scenario` for the remaining rows.
    onScenario: (soFar) => keepRecord(joinRecords(earlier, makeRecord(run, soFar))),
    onFailure: ({ name }, path, error) =>
      run.failures.push({ row: name, path: path.name, message: error.message.split('\n')[0].slice(0, 200) }),
  });
  progress.finish();
  const record = joinRecords(earlier, makeRecord(run, results));
  const whole = isWhole(record, ROWS, choosePeerPaths([], runtimes).paths);
  process.stdout.write(`${renderPage(record)}\n`);
  say(
    `written: ${writeRecord(record, { whole })
      .map((file) => relative(process.cwd(), file))
      .join(', ')}`,
  );
  return run.failures.some(({ path }) => path.startsWith('ours')) ? 1 : 0;
}

/** Outside the namespaces, prepares everything that needs the machine's network. Inside, runs the measurements. */
async function bench(options, args) {
  const command = ['npm run bench:peers', ...(args.length > 0 ? ['--', ...args] : [])].join(' ');
  if (isInside()) {
    settleInside();
    return measure(options, command);
  }
  // The build has done this for the Node.js that has built, as on a machine of a user.
  for (const { node } of runtimesOf(options.nodes)) await keepCompiledCode({ client: join(ROOT, 'apps/cli'), node });
  await obtainPeers(programsOf(options.paths), say);
  const { missing } = compileLoad();
  if (missing) throw new Error(missing);
  const alone = whyNoNamespaces();
  if (alone === null) return runInside(args);
  say(alone);
  return measure(options, command);
}

function listAll() {
  for (const { name, title } of ROWS) process.stdout.write(`row   ${name.padEnd(18)} ${title}\n`);
  const { paths, missing } = choosePeerPaths([], runtimesOf([]));
  const lacking = new Map(missing.map((line) => [line.split(':')[0], line]));
  const there = new Map(
    paths.map(({ name, protocol, carrier, note }) => [name, `${protocol}, ${carrier}${note ? `: ${note}` : ''}`]),
  );
  for (const name of PATH_NAMES) {
    process.stdout.write(
      `path  ${name.padEnd(18)} ${there.get(name) ?? `missing (${lacking.get(name)?.slice(name.length + 2)})`}\n`,
    );
  }
}

async function main(args) {
  try {
    const options = readPeersOptions(args, { rowNames: ROWS.map(({ name }) => name), pathNames: PATH_NAMES });
    if (options.help) process.stdout.write(`${USAGE}\n`);
    else if (options.list) listAll();
    else if (!existsSync('/proc/self/stat')) throw new Error('it reads CPU and memory from /proc: it needs Linux');
    else return await bench(options, args);
    return 0;
  } catch (error) {
    say(`\nbench:peers failed: ${error.message}`);
    if (error instanceof UsageError) say(USAGE);
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exit(await main(process.argv.slice(2)));
