// 100,000 addresses and 100,000 header values at a rate limit of each kind: the table stays within its bound, those that find no room are limited together, who
// was known before is served as before, memory is flat, and no turn of the edge's event loop takes over 20 ms of CPU.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { throwAwayFolder } from '../../../bench/lib/children.mjs';
import { startEdge } from '../groups/lib/edge.mjs';
import { inParallel } from '../groups/lib/in-parallel.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { startTunnels } from './lib/policy-client.mjs';

const USAGE = `usage: node tests/tools/policy/limiter-flood.mjs [--keys N]
100,000 addresses and as many values of a header (--keys), each once, then once more.`;

const WATCHED = fileURLToPath(new URL('lib/watched-edge.mjs', import.meta.url));
const RATE = { requests: 5, per_secs: 3600 };
/** Of one rule, and of them the buckets that are refilled while it runs. */
const KEYS_PER_RULE = 10_000;
const SLACK = 20;
const TURN_MAX_MS = 20;
const GROWTH_MAX_MB = 16;
const CONNECTIONS = 8;
/** Requests of a connection that are under way: what one turn reads is some of them of each. */
const PIPELINED = 4;
const TIMEOUT_MS = 30_000;
const MB = 1e6;

/** One connection, some requests at a time; `ask(statuses)` gives their statuses in order. */
class Visitor {
  #socket;
  #text = '';
  #wanted = 0;
  #statuses = [];
  #done = null;

  static async at(port) {
    const visitor = new Visitor();
    visitor.#socket = connect(port, '127.0.0.1');
    visitor.#socket.setEncoding('latin1').setNoDelay(true);
    await once(visitor.#socket, 'connect');
    visitor.#socket.setTimeout(TIMEOUT_MS, () => visitor.#socket.destroy(new Error('no answer within 30 s')));
    visitor.#socket.on('error', (error) => visitor.#done?.reject(error));
    visitor.#socket.on('close', () => visitor.#done?.reject(new Error('the edge closed a connection')));
    visitor.#socket.on('data', (text) => visitor.#read(text));
    return visitor;
  }

  ask(heads) {
    this.#wanted = heads.length;
    this.#statuses = [];
    const answers = new Promise((resolve, reject) => {
      this.#done = { resolve, reject };
    });
    this.#socket.write(heads.join(''));
    return answers;
  }

  close() {
    this.#done = null;
    this.#socket.destroy();
  }

  /** Answers have a length, and so an end. */
  #read(text) {
    this.#text += text;
    for (;;) {
      const end = this.#text.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = this.#text.slice(0, end);
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (this.#text.length < end + 4 + length) return;
      this.#text = this.#text.slice(end + 4 + length);
      this.#statuses.push({
        status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]),
        retryAfter: Number(/^retry-after: *(\d+)/im.exec(head)?.[1] ?? 0),
        code: /^x-tunnel-error: *(\w+)/im.exec(head)?.[1] ?? null,
      });
      if (this.#statuses.length === this.#wanted) this.#done.resolve(this.#statuses);
    }
  }
}

const headOf = (host, address, more = '') =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: application/json\r\nX-Forwarded-For: ${address}\r\n${more}\r\n`;

/** `headAt(index)` for each of `count`; how many answers of each status there were. */
async function flood(port, count, headAt) {
  const counts = {};
  await inParallel(CONNECTIONS, CONNECTIONS, async (lane) => {
    const visitor = await Visitor.at(port);
    for (let index = lane * PIPELINED; index < count; index += CONNECTIONS * PIPELINED) {
      const heads = Array.from({ length: Math.min(PIPELINED, count - index) }, (_, offset) => headAt(index + offset));
      for (const { status } of await visitor.ask(heads)) counts[status] = (counts[status] ?? 0) + 1;
    }
    visitor.close();
  });
  return counts;
}

async function askOnce(port, head) {
  const visitor = await Visitor.at(port);
  const [answer] = await visitor.ask([head]);
  visitor.close();
  return answer;
}

const addressOf = (index) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
/** Long ones, of which only a digest may be kept. */
const valueOf = (index) => `${index}-`.padEnd(200, 'x');

/** A person beside it all, every 20 ms at a tunnel without a policy. */
function watchNeighbour(port, host) {
  const times = [];
  let isOver = false;
  const run = async () => {
    while (!isOver) {
      const begun = performance.now();
      const { status } = await askOnce(port, headOf(host, '198.51.100.77'));
      times.push(status === 200 ? performance.now() - begun : Number.POSITIVE_INFINITY);
      await pause(20);
    }
  };
  const running = run();
  return async () => {
    isOver = true;
    await running;
    return times.toSorted((a, b) => a - b);
  };
}

/** The largest number of keys that the metric had. */
const keysHeld = async (edge) =>
  [...(await edge.series('tunnel_policy_limiter_keys')).values()].reduce((a, b) => a + b, 0);

/** As watched-edge.mjs writes it. */
const readTurns = (file) => JSON.parse(readFileSync(file, 'utf8') || '{"begun":0}');

const heldMb = async (edge) => (await edge.memory()).heldBytes / MB;

/** 200s of a flood of new keys: a burst's first request of each that found room, and what the shared bucket gave. */
const isWithin = (passed, room) => passed >= room - SLACK && passed <= room + RATE.requests + SLACK;

async function tryKnown(port, headsOf, check, what) {
  const statuses = [];
  for (let count = 0; count < RATE.requests; count += 1) statuses.push(await askOnce(port, headsOf()));
  const [last] = statuses.slice(-1);
  const passed = statuses.filter(({ status }) => status === 200).length;
  check(passed === RATE.requests - 1, `${what} known before: ${passed} of its ${RATE.requests - 1} are served`);
  const isLimited = last.status === 429 && last.code === 'POLICY_RATE_LIMITED' && last.retryAfter >= 1;
  check(isLimited, `and then ${last.status} ${last.code}, again after ${last.retryAfter} s`);
}

const openTunnels = async (edge) => {
  const service = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port } = service.address();
  const limit = (by) => [{ name: `by ${by}`, rate_limit: { ...RATE, by } }];
  return startTunnels(edge, [
    { name: 'by-address', port, policy: limit('address') },
    { name: 'by-header', port, policy: limit('header:x-api-key') },
    { name: 'neighbour', port, policy: null },
  ]);
};

await runScript(
  { name: 'limiter-flood', usage: USAGE, options: { keys: 100_000 }, limitSecs: ({ keys }) => 120 + keys / 250 },
  async ({ values: { keys }, say, check }) => {
    const turnsFile = join(throwAwayFolder(), 'turns');
    process.env.TURNS_FILE = turnsFile;
    const edge = await startEdge({ server: WATCHED, serverLines: 'trusted_proxies = ["127.0.0.1", "::1"]' });
    const client = await openTunnels(edge);
    const [byAddress, byHeader] = [client.hostOf('by-address'), client.hostOf('by-header')];
    const port = edge.httpPort;
    const addressHead = (index) => headOf(byAddress, addressOf(index));
    const headerHead = (index) => headOf(byHeader, '198.51.100.8', `X-Api-Key: ${valueOf(index)}\r\n`);
    const knownAddress = () => headOf(byAddress, '198.51.100.9');
    const knownKey = () => headOf(byHeader, '198.51.100.9', 'X-Api-Key: mine\r\n');

    // All code is warm, and what an edge keeps of requests anyway is there.
    await flood(port, 5000, () => headOf(client.hostOf('neighbour'), '198.51.100.7'));
    await askOnce(port, knownAddress());
    await askOnce(port, knownKey());
    const network = await flood(port, 200, (index) => headOf(byAddress, `2001:db8:7:7::${(index + 1).toString(16)}`));
    check(network[200] === RATE.requests, `200 addresses of one IPv6 /64: ${network[200]} requests pass`);
    const before = await heldMb(edge);
    // The collections for that figure are no turn of the flood's.
    process.kill(edge.child.pid, 'SIGUSR2');
    await until('the watch began anew', () => readTurns(turnsFile).begun === 2);
    const neighbour = watchNeighbour(port, client.hostOf('neighbour'));

    const room = Math.min(keys, KEYS_PER_RULE - 2);
    const addresses = await flood(port, keys, addressHead);
    say(`${keys} addresses: ${JSON.stringify(addresses)}`);
    check(
      isWithin(addresses[200], room),
      `${addresses[200]} of ${keys} new addresses pass: one each while there is room`,
    );
    const headers = await flood(port, keys, headerHead);
    say(`${keys} values of a header: ${JSON.stringify(headers)}`);
    check(isWithin(headers[200], room), `${headers[200]} of ${keys} new values pass`);
    const again = await flood(port, keys, addressHead);
    say(`the addresses once more: ${JSON.stringify(again)}`);
    check(again[200] <= room + SLACK, `${again[200]} pass the second time: those that have room, and no others`);
    const { worstMs: worstTurn } = readTurns(turnsFile);
    const times = await neighbour();

    await tryKnown(port, knownAddress, check, 'an address');
    await tryKnown(port, knownKey, check, 'a key');
    const held = await keysHeld(edge);
    check(held > 0 && held <= 2 * KEYS_PER_RULE, `the limiters hold ${held} keys`);
    const growth = (await heldMb(edge)) - before;
    check(growth < GROWTH_MAX_MB, `the edge holds ${growth.toFixed(1)} MB more than before`);
    check(worstTurn <= TURN_MAX_MS, `the longest turn took ${worstTurn.toFixed(1)} ms of CPU`);
    const p99 = times[Math.floor(times.length * 0.99)];
    check(
      times.length > 0 && Number.isFinite(times.at(-1)),
      `a neighbour got all ${times.length} answers, p99 ${p99?.toFixed(1)} ms`,
    );
    await client.stop();
    await edge.close();
    return `${3 * keys} requests of ${2 * keys} keys: ${held} keys held, ${growth.toFixed(1)} MB, longest turn ${worstTurn.toFixed(1)} ms`;
  },
);
