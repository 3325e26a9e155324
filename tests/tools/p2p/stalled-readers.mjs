// Attacks by a peer on other peers: connections with stalled readers over the relay and the direct path, endless join requests, guessed
// secrets, and too many peers. Memory must stay bounded, and joined peers must be served.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { residentBytes } from '../../../bench/lib/process-table.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { P2pEdge, P2pProgram, secretFile, startBigFiles, startDownload } from './lib/stage.mjs';

const USAGE = 'usage: node tests/tools/p2p/stalled-readers.mjs [--readers N] [--seconds N]';
const MB = 1_000_000;
const PEER_LIMIT = 3;
const GUESSES = 20_000;

async function openPair(edge, name, files, way, secret = secretFile(edge.folder)) {
  const flags = way === 'relay' ? ['--no-direct'] : [];
  const publisher = new P2pProgram(edge, ['publish', name, String(files)], { secret, flags });
  await publisher.says({ event: 'ready' });
  const subscriber = new P2pProgram(edge, ['connect', name, '--listen', '0'], { secret, flags });
  await subscriber.says({ event: 'path', path: way });
  return { publisher, subscriber, secret };
}

const megabytesOf = (pid) => Math.round(residentBytes(pid).now / MB);

/** Opens connections that each request 10 GB and read nothing. */
async function tryStalled({ edge, files, check, values }, way) {
  const { publisher, subscriber } = await openPair(edge, `stalled-${way}`, files, way);
  await startDownload(subscriber.port, 100 * MB).over;
  const programs = { edge, publisher: publisher.child, subscriber: subscriber.child };
  const before = Object.fromEntries(Object.entries(programs).map(([name, { pid }]) => [name, megabytesOf(pid)]));
  const sockets = [];
  for (let n = 0; n < values.readers; n += 1) {
    const socket = connect({ host: '127.0.0.1', port: subscriber.port });
    socket.on('error', () => {});
    socket.pause();
    socket.write(`${10_000 * MB}\n`);
    sockets.push(socket);
  }
  await delay(values.seconds * 1000);
  const begunAt = Date.now();
  const beside = startDownload(subscriber.port, 20 * MB);
  check(
    (await beside.over) === 'ok',
    `${way}: 20 MB beside ${values.readers} readers that stand still: ${beside.said}, ${Date.now() - begunAt} ms`,
  );
  for (const [name, { pid }] of Object.entries(programs)) {
    const grown = megabytesOf(pid) - before[name];
    // Each stream may have a full window in flight at both of its ends.
    check(grown < 40 + values.readers, `${way}: the ${name} has grown by ${grown} MB from ${before[name]} MB`);
  }
  check(subscriber.path.startsWith(way), `${way}: still ${subscriber.path}`);
  for (const socket of sockets) socket.destroy();
  await delay(2_000);
  const after = startDownload(subscriber.port, 20 * MB);
  check((await after.over) === 'ok', `${way}: and after they have gone: ${after.said}`);
  await subscriber.stop();
  await publisher.stop();
}

/** A control client that requests joins and opens no stream. */
class RawSubscriber {
  answers = [];
  isClosed = false;
  #ws;
  #asked = 0;

  static async enter(edge) {
    const raw = new RawSubscriber();
    raw.#ws = new WebSocket(`ws://${edge.control}/_control`);
    raw.#ws.on('error', () => {});
    raw.#ws.on('close', () => {
      raw.isClosed = true;
    });
    await once(raw.#ws, 'open');
    raw.#ws.on('message', (data) => {
      const message = JSON.parse(data.toString('utf8'));
      if (message.type === 'Ping') raw.#ws.send(JSON.stringify({ type: 'Pong', id: message.id }));
      if (message.type === 'PeerConnected' || message.type === 'PeerError') raw.answers.push(message);
      if (message.type === 'AuthOk') raw.answers.push(message);
    });
    const token = readFileSync(edge.tokenFile, 'utf8').trim();
    const capabilities = ['datagram', 'p2p'];
    raw.#ws.send(JSON.stringify({ type: 'Auth', versions: [1], token, agent: 'script', capabilities }));
    await until('it is let in', () => raw.answers.length > 0);
    raw.answers = [];
    return raw;
  }

  ask(name, secret, fields = {}) {
    this.#asked += 1;
    const hash = createHash('sha256').update(secret).digest('hex');
    const message = {
      type: 'ConnectPeer',
      request_id: `r${this.#asked}`,
      p2p_name: name,
      p2p_secret_hash: hash,
      service: 'tcp',
    };
    this.#ws.send(JSON.stringify({ ...message, ...fields }));
  }

  codes() {
    const counts = {};
    for (const { type, code } of this.answers) counts[code ?? type] = (counts[code ?? type] ?? 0) + 1;
    return counts;
  }

  close() {
    this.#ws.terminate();
  }
}

async function tryFloods({ edge, files, check }) {
  const { publisher, subscriber, secret } = await openPair(edge, 'flooded', files, 'relay');
  const right = readFileSync(secret, 'utf8').trim();
  const before = megabytesOf(edge.pid);

  const many = await RawSubscriber.enter(edge);
  for (let n = 0; n < 10; n += 1) many.ask('flooded', right);
  await until('all are answered', () => many.answers.length === 10 || many.isClosed);
  const codes = many.codes();
  check(
    codes.PeerConnected === PEER_LIMIT - 1 && codes.P2P_PEER_LIMIT === 10 - (PEER_LIMIT - 1),
    `peers at the limit of ${PEER_LIMIT}: ${JSON.stringify(codes)}`,
  );
  many.close();

  const flood = await RawSubscriber.enter(edge);
  for (let n = 0; n < GUESSES && !flood.isClosed; n += 1) flood.ask(`nobody-${n}`, randomBytes(8));
  // The frame rate limit lets some of the requests through, in less than the minute in which attempts are counted.
  await delay(20_000);
  const guessed = flood.codes();
  check(guessed.P2P_NOT_FOUND === 60, `${GUESSES} guesses: closed ${flood.isClosed}, ${JSON.stringify(guessed)}`);
  const still = startDownload(subscriber.port, 5 * MB);
  check((await still.over) === 'ok', `whoever is joined is served meanwhile: ${still.said}`);
  const late = await RawSubscriber.enter(edge);
  late.ask('flooded', right);
  await until('an answer', () => late.answers.length > 0);
  check(
    late.answers[0].code === 'P2P_TOO_MANY_ATTEMPTS',
    `then not even the right one is looked at: ${late.answers[0].message}`,
  );
  late.close();
  flood.close();

  const odd = await RawSubscriber.enter(edge);
  const fields = [{ service: 'sctp' }, { p2p_secret_hash: 'x' }, { p2p_name: 7 }, { peer_id: 'x'.repeat(100_000) }];
  for (const each of fields) if (!odd.isClosed) odd.ask('flooded', right, each);
  await delay(500);
  check(megabytesOf(edge.pid) - before < 40, `the edge has ${megabytesOf(edge.pid)} MB, ${before} before`);
  odd.close();
  await subscriber.stop();
  await publisher.stop();
}

await runScript(
  { name: 'stalled readers', usage: USAGE, options: { readers: 100, seconds: 10 }, limitSecs: () => 300 },
  async ({ values, check, say }) => {
    const edge = await P2pEdge.start(`[p2p]\npeers_per_tunnel = ${PEER_LIMIT}\n`);
    const stage = { edge, files: await startBigFiles(), check, say, values };
    for (const way of ['relay', 'direct']) await tryStalled(stage, way);
    await tryFloods(stage);
    return 'nobody costs the others anything';
  },
);
