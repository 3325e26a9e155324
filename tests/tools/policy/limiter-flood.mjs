// 100,000 addresses and 100,000 header values at a rate limit of each kind, as many at ten rules of one tunnel, and 10,000 wrong passwords from 1,000 addresses,
// all at the tunnels of one account: the tables stay within their bounds, those that find no room are limited together, who was known before is served as
// before, memory is flat, no turn of the edge's event loop takes over 20 ms of CPU. A tunnel of another account keeps what it has counted, counts each new
// visitor by itself, and lets in people with a password whom it has never seen.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
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
100,000 addresses and as many values of a header (--keys), each once, then once more; a tenth as many wrong passwords.`;

const WATCHED = fileURLToPath(new URL('lib/watched-edge.mjs', import.meta.url));
const RATE = { requests: 5, per_secs: 3600 };
/** Of one rule, and of them the buckets that are refilled while it runs. */
const KEYS_PER_RULE = 10_000;
const SLACK = 20;
/** Of one account. */
const KEYS_PER_TENANT = 50_000;
const GUESSERS = 1000;
/** More than are checked and wait at once. */
const GUESSING_CONNECTIONS = 100;
/** With two checks at a time and one other who wants some. */
const LOGIN_MAX_MS = 5000;
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

const headOf = (host, address, more = '', path = '/') =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: application/json\r\nX-Forwarded-For: ${address}\r\n${more}\r\n`;

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

/** One after the other on many connections, `least` of them and on while `work` is under way. */
async function guess(port, least, headAt, work) {
  const counts = {};
  let begun = 0;
  let isOver = false;
  const worked = work.finally(() => {
    isOver = true;
  });
  await inParallel(GUESSING_CONNECTIONS, GUESSING_CONNECTIONS, async () => {
    const visitor = await Visitor.at(port);
    while (begun < least || !isOver) {
      begun += 1;
      const [{ status }] = await visitor.ask([headAt(begun)]);
      counts[status] = (counts[status] ?? 0) + 1;
    }
    visitor.close();
  });
  return { counts, result: await worked };
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

const ACCOUNTS = ['evil', 'shop'];
const tokenOf = (account) => `${account}-token`.padEnd(40, '0');
const keyTables = ACCOUNTS.map((account) => {
  const sha256 = createHash('sha256').update(tokenOf(account)).digest('hex');
  return `[[auth.keys]]\naccount = "${account}"\nsha256 = "${sha256}"`;
}).join('\n');

const PEOPLE = ['ann', 'bob', 'cem', 'dee', 'eve'];
const passwordOf = (name) => `the password of ${name}`;
const basic = (name, password) => `Authorization: Basic ${Buffer.from(`${name}:${password}`).toString('base64')}\r\n`;
const guarded = (...names) => ({
  name: 'people',
  match: { path: '/people/**' },
  auth: { basic: { users: Object.fromEntries(names.map((name) => [name, passwordOf(name)])) } },
});

/** What is flooded is one account's, the shop another's, and the neighbour without a policy the operator's. */
const openTunnels = async (edge) => {
  const service = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port } = service.address();
  const limit = (by, name = `by ${by}`) => ({ name, rate_limit: { ...RATE, by } });
  const open = (tunnels, account) => {
    if (account === undefined) return startTunnels(edge, tunnels);
    const file = join(throwAwayFolder(), 'token');
    writeFileSync(file, tokenOf(account), { mode: 0o600 });
    return startTunnels(edge, tunnels, [], file);
  };
  const clients = [
    await open(
      [
        { name: 'by-address', port, policy: [limit('address')] },
        { name: 'by-header', port, policy: [limit('header:x-api-key')] },
        { name: 'ten', port, policy: Array.from({ length: 10 }, (_, at) => limit('header:x-api-key', `rule ${at}`)) },
        { name: 'vault', port, policy: [guarded('mallory')] },
      ],
      'evil',
    ),
    await open([{ name: 'shop', port, policy: [limit('address'), guarded(...PEOPLE)] }], 'shop'),
    await open([{ name: 'neighbour', port, policy: null }]),
  ];
  const owner = { neighbour: clients[2], shop: clients[1] };
  return {
    hostOf: (name) => (owner[name] ?? clients[0]).hostOf(name),
    stop: () => Promise.all(clients.map((client) => client.stop())),
  };
};

/** People whom the shop has never seen, one after the other, while strangers guess at another's tunnel. */
async function letPeopleIn(port, host) {
  const times = [];
  for (const name of PEOPLE) {
    const begun = performance.now();
    const more = basic(name, passwordOf(name));
    const { status } = await askOnce(port, headOf(host, '198.51.100.20', more, '/people/me'));
    times.push(status === 200 ? performance.now() - begun : Number.POSITIVE_INFINITY);
  }
  return times;
}

/** The same account goes on, at ten rules at once and with guesses, while others come to the shop. */
async function tryNeighbours(port, client, { keys, say, check }) {
  const [shop, tenRules, vault] = ['shop', 'ten', 'vault'].map((name) => client.hostOf(name));
  const tenHead = (index) => headOf(tenRules, '198.51.100.8', `X-Api-Key: ${valueOf(index)}\r\n`);
  const guessHead = (index) =>
    headOf(vault, addressOf(index % GUESSERS), basic('mallory', `guess ${index}`), '/people/x');
  const ten = await flood(port, keys, tenHead);
  say(`${keys} values at ten rules: ${JSON.stringify(ten)}`);
  const visitors = await flood(port, 1000, (index) => headOf(shop, `172.16.${index >> 8}.${index & 255}`));
  check(visitors[200] === 1000, `${visitors[200]} of 1000 new visitors of the shop pass: each has a bucket of its own`);

  const { counts: guesses, result: people } = await guess(port, keys / 10, guessHead, letPeopleIn(port, shop));
  say(`wrong passwords from ${GUESSERS} addresses: ${JSON.stringify(guesses)}`);
  check(guesses[200] === undefined && guesses[503] > 0, `no guess passes, and ${guesses[503]} are told to come again`);
  const slowest = Math.max(...people);
  check(
    slowest < LOGIN_MAX_MS,
    `meanwhile ${people.length} people log in at the shop, the slowest in ${slowest.toFixed(0)} ms`,
  );
}

await runScript(
  { name: 'limiter-flood', usage: USAGE, options: { keys: 100_000 }, limitSecs: ({ keys }) => 120 + keys / 250 },
  async ({ values: { keys }, say, check }) => {
    const turnsFile = join(throwAwayFolder(), 'turns');
    process.env.TURNS_FILE = turnsFile;
    const serverLines = 'trusted_proxies = ["127.0.0.1", "::1"]';
    const edge = await startEdge({ server: WATCHED, serverLines, tables: keyTables });
    const client = await openTunnels(edge);
    const [byAddress, byHeader, shop] = ['by-address', 'by-header', 'shop'].map((name) => client.hostOf(name));
    const port = edge.httpPort;
    const addressHead = (index) => headOf(byAddress, addressOf(index));
    const headerHead = (index) => headOf(byHeader, '198.51.100.8', `X-Api-Key: ${valueOf(index)}\r\n`);
    const knownAddress = () => headOf(byAddress, '198.51.100.9');
    const knownKey = () => headOf(byHeader, '198.51.100.9', 'X-Api-Key: mine\r\n');
    const knownAtShop = () => headOf(shop, '198.51.100.9');

    // All code is warm, and what an edge keeps of requests anyway is there.
    await flood(port, 5000, () => headOf(client.hostOf('neighbour'), '198.51.100.7'));
    await askOnce(port, knownAddress());
    await askOnce(port, knownKey());
    await askOnce(port, knownAtShop());
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
    await tryNeighbours(port, client, { keys, say, check });
    const { worstMs: worstTurn } = readTurns(turnsFile);
    const times = await neighbour();

    await tryKnown(port, knownAddress, check, 'an address');
    await tryKnown(port, knownKey, check, 'a key');
    await tryKnown(port, knownAtShop, check, 'an address at the shop');
    const held = await keysHeld(edge);
    const most = KEYS_PER_TENANT + 1000 + SLACK;
    check(held > 0 && held <= most, `the limiters hold ${held} keys, ${KEYS_PER_TENANT} of the one account at most`);
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
    return `${4 * keys} requests of ${3 * keys} keys, ${keys / 10} guesses: ${held} keys held, ${growth.toFixed(1)} MB, longest turn ${worstTurn.toFixed(1)} ms`;
  },
);
