// The NAT matrix: an edge, publishers and subscribers as real programs, each behind a kernel NAT in a separate namespace. Fifteen pairs
// are checked for their path and the reported reason. Afterwards the direct paths are cut, restored, left idle, and made lossy.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { leaveNothingBehind, startChild, throwAwayFolder } from '../../bench/lib/children.mjs';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { EDGE_ADDRESS, KINDS, missing, Networks, removeAll } from './lib/networks.mjs';
import { Place } from './lib/place.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const CLIENT = process.env.TUNNEL_NAT_CLIENT ?? join(ROOT, 'apps/cli/bin/tunnel.mjs');
const CONTROL_PORT = 4040;

// Time limits that the contract promises.
const FIRST_BYTE_MS = 200;
/** Returns the limit for the first byte, scaled by the load, because on a busy machine every event loop turn waits for a core. */
const firstByteMs = () => Math.round(FIRST_BYTE_MS * Math.max(1, loadavg()[0] / availableParallelism()));
const DIRECT_MS = 3_000;
const CUT_MS = 5_000;
/**
 * Limit for the return to the direct path: the first pause is 5 s, and the rest is for the attempt and for programs that share two cores.
 */
const RETURN_MS = 12_000;
/** Three times as long as the NATs keep a silent flow. */
const IDLE_MS = 60_000;
const LOSSY_MS = 20_000;

let passed = 0;
let failed = 0;
const startedAt = Date.now();
const say = (line) =>
  process.stdout.write(`${String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)} s  ${line}\n`);
const check = (isRight, what) => {
  if (isRight) passed += 1;
  else failed += 1;
  say(`${isRight ? 'right' : 'WRONG'}  ${what}`);
};

/**
 * Returns the expected path: direct if one side is reachable and the other can send UDP, or if both keep their ports; otherwise the relay
 * with its reason.
 */
function expectedOf(a, b) {
  if (a === 'blocked' || b === 'blocked') return { path: 'relay', reason: 'udp-blocked' };
  const reachable = ['none', 'open'];
  if (reachable.includes(a) || reachable.includes(b) || (a === 'moderate' && b === 'moderate'))
    return { path: 'direct', reason: '' };
  return { path: 'relay', reason: 'random-ports' };
}

const PAIRS = KINDS.flatMap((a, index) => KINDS.slice(index).map((b) => [a, b]));

const lastPath = (client) => client.events.findLast(({ event }) => event === 'path');
const textOf = ({ path, reason } = {}) => [path, reason].join(' ').trim();

async function startEdge(networks, folder) {
  const config = join(folder, 'server.toml');
  const text = `[server]\nhost = "0.0.0.0"\ncontrol_port = ${CONTROL_PORT}\napi_port = 0\nmetrics_port = 0\nhttp_port = 0\nhttps_port = 0\n[limits]\ntcp_port_range = [21000, 21009]\nudp_port_range = [22000, 22009]\n`;
  writeFileSync(config, text);
  const data = join(folder, 'edge');
  const server = [process.execPath, SERVER, 'edge', '--config', config, '--data-dir', data];
  let isUp = false;
  const edge = startChild({ name: 'edge', command: 'ip', args: ['netns', 'exec', networks.edge, ...server] });
  for (let tries = 0; tries < 300 && !isUp; tries += 1) {
    await delay(100);
    isUp = edge.output.includes('ready') || edge.output.includes('listening');
  }
  if (!isUp) throw new Error(`the edge did not start: ${edge.output}`);
  return join(data, 'admin-token');
}

function flagsOf(folder, tokenFile) {
  return [
    '--json',
    '--no-tls',
    '--server',
    `${EDGE_ADDRESS}:${CONTROL_PORT}`,
    '--token-file',
    tokenFile,
    '--secret-file',
    join(folder, 'secret'),
  ];
}

async function publish(networks, kind, { folder, flags }) {
  const namespace = networks.place(`p-${kind}`, kind);
  const place = new Place(namespace);
  const { port } = await place.ask('serve');
  const home = join(folder, `p-${kind}`);
  mkdirSync(home);
  const args = ['p2p', 'publish', `at-${kind}`, String(port), ...flags];
  await place.ask('start', { client: 'publisher', program: CLIENT, args, env: { HOME: home } });
  const client = place.client('publisher');
  const isReady = await place.until(20_000, () => client.events.some(({ event }) => event === 'ready'));
  if (!isReady) throw new Error(`the publisher behind ${kind} did not start: ${client.stderr.join('\n')}`);
  return { place, client, namespace };
}

/** Connects a pair and checks its path, the publisher's view of the path, and a transfer. */
async function tryPair([a, b], place, publisher, { folder, flags }, expected = expectedOf(a, b)) {
  const name = `${a} × ${b}`;
  const home = join(folder, `s-${a}-${b}`);
  mkdirSync(home);
  const args = ['p2p', 'connect', `at-${b}`, '--listen', '0', ...flags];
  await place.ask('start', { client: b, program: CLIENT, args, env: { HOME: home }, echoAtReady: true });
  const client = place.client(b);
  const ready = await place.until(20_000, () => client.events.find(({ event }) => event === 'ready'));
  if (!ready) {
    check(false, `${name}: is ready (${client.stderr.join(' ')})`);
    return null;
  }
  const first = await place.until(6_000, () => client.first);
  const limitMs = firstByteMs();
  check(
    first?.ms <= limitMs,
    `${name}: the first byte through the relay ${first?.ms ?? first?.error} ms after ready, at most ${limitMs}`,
  );
  const isThere = () => textOf(lastPath(client)) === textOf(expected) && lastPath(client);
  const outcome = await place.until(expected.path === 'direct' ? DIRECT_MS : 15_000, isThere);
  const afterMs = outcome ? outcome.heardAt - ready.heardAt : '-';
  check(Boolean(outcome), `${name}: ${textOf(lastPath(client))} after ${afterMs} ms, expected ${textOf(expected)}`);
  const peerId = lastPath(client)?.peer_id;
  const seen = () =>
    textOf(publisher.client.events.findLast(({ event, peer_id }) => event === 'path' && peer_id === peerId));
  const isSame = await publisher.place.until(3_000, () => seen() === textOf(expected));
  check(Boolean(isSame), `${name}: the publisher says the same: ${seen()}`);
  const port = Number(ready.listen.split(':').at(-1));
  const echoed = await place.ask('echo', { port, bytes: 1_000_000, limitMs: 20_000 });
  check(
    echoed.error === undefined,
    `${name}: 1 MB there and back${echoed.error === undefined ? '' : `: ${echoed.error}`}`,
  );
  return { name, place, client, port, expected };
}

const echoAll = (pairs, bytes, limitMs) =>
  Promise.all(pairs.map(({ place, port }) => place.ask('echo', { port, bytes, limitMs })));
const pathsIn = ({ client }, sinceAt) =>
  client.events.filter(({ event, heardAt }) => event === 'path' && heardAt > sinceAt);

/** Cuts the direct paths while a program opens connections repeatedly, and restores the paths afterwards. */
async function tryCut(networks, pairs) {
  const cutAt = Date.now();
  networks.between('drop');
  const left = await Promise.all(
    pairs.map(async (pair) => {
      const isLeft = () => pathsIn(pair, cutAt).some(({ path }) => path === 'relay');
      for (;;) {
        const { error } = await pair.place.ask('echo', { port: pair.port, bytes: 10, limitMs: 500 });
        const ms = Date.now() - cutAt;
        if (error === undefined || ms > 15_000) return { ms, error, isLeft: isLeft() };
      }
    }),
  );
  for (const [index, { name, client }] of pairs.entries()) {
    const { ms, error } = left[index];
    check(
      error === undefined && ms <= CUT_MS,
      `${name}: cut; a new connection works after ${ms} ms, ${textOf(lastPath(client))}`,
    );
  }
  networks.between('');
  const mendedAt = Date.now();
  for (const { name, place, client } of pairs) {
    const back = await place.until(RETURN_MS - (Date.now() - mendedAt), () => lastPath(client)?.path === 'direct');
    check(
      Boolean(back),
      `${name}: mended; ${textOf(lastPath(client))} after ${(lastPath(client)?.heardAt ?? 0) - mendedAt} ms`,
    );
  }
}

async function tryIdle(pairs) {
  const sinceAt = Date.now();
  await delay(IDLE_MS);
  const echoed = await echoAll(pairs, 10, 5_000);
  for (const [index, pair] of pairs.entries()) {
    const changes = pathsIn(pair, sinceAt).map(textOf);
    const { error } = echoed[index];
    check(
      changes.length === 0 && error === undefined,
      `${pair.name}: ${IDLE_MS / 1000} s idle behind NATs that forget after 20 s: ${changes.join(', ') || 'direct'}${error ?? ''}`,
    );
  }
}

async function tryLoss(networks, pairs) {
  networks.between('numgen random mod 100 < 2 drop');
  const sinceAt = Date.now();
  const errors = pairs.map(() => 0);
  while (Date.now() - sinceAt < LOSSY_MS) {
    for (const [index, { error }] of (await echoAll(pairs, 20_000, 10_000)).entries())
      errors[index] += error === undefined ? 0 : 1;
    await delay(200);
  }
  networks.between('');
  for (const [index, pair] of pairs.entries()) {
    const changes = pathsIn(pair, sinceAt).map(textOf);
    check(
      changes.length === 0 && errors[index] === 0,
      `${pair.name}: 2 % loss for ${LOSSY_MS / 1000} s: ${changes.join(', ') || 'direct'}, ${errors[index]} connections failed`,
    );
  }
}

async function main() {
  const networks = new Networks();
  const folder = throwAwayFolder();
  writeFileSync(join(folder, 'secret'), `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  const tokenFile = await startEdge(networks, folder);
  const setting = { folder, flags: flagsOf(folder, tokenFile) };
  const publishers = new Map();
  for (const kind of KINDS) publishers.set(kind, await publish(networks, kind, setting));
  const places = new Map(KINDS.map((kind) => [kind, new Place(networks.place(`s-${kind}`, kind))]));
  say('the edge and five publishers are up');
  const pairs = [];
  for (const pair of PAIRS) pairs.push(await tryPair(pair, places.get(pair[0]), publishers.get(pair[1]), setting));
  // Within the same network, the public ports of the NAT do not matter.
  const neighbour = new Place(networks.neighbour('s-neighbour', publishers.get('strict').namespace));
  const within = { path: 'direct', reason: '' };
  await tryPair(['its neighbour', 'strict'], neighbour, publishers.get('strict'), setting, within);
  const direct = pairs.filter((pair) => pair !== null && lastPath(pair.client)?.path === 'direct');
  await tryCut(networks, direct);
  await tryIdle(direct);
  await tryLoss(networks, direct);
}

const why = missing();
if (why !== null) {
  process.stdout.write(`skipped: the NAT matrix (${why})\n`);
} else {
  leaveNothingBehind();
  process.on('exit', removeAll);
  try {
    await main();
  } catch (error) {
    check(false, error.stack);
  }
  process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(failed === 0 ? 0 : 1));
}
