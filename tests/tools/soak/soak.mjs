// Runs minutes of misbehaving visitors and services, aborted handshakes, garbage at every port, and members that are killed. At the end
// the edge must hold no connection in its gauges, no descriptor and no memory, and an honest visitor must have received every response.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { Chance } from '../lib/chance.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { startHttp1Service, startHttp2Service, startTcpService } from './lib/odd-services.mjs';
import { Visitors } from './lib/odd-visitors.mjs';
import { Client, startStack } from './lib/stack.mjs';

const USAGE = `usage: npm run soak -- [--minutes N] [--seed N] [--rate N]
Odd visitors at 16 a second (--rate) for 10 minutes (--minutes). The seed is printed; the same one brings the same visitors.`;

/** Clients close superfluous carriers in one or two periods of CARRIER_SURPLUS_MS, a minute, after the last visitor. */
const SETTLE_MS = 180_000;
const GROWTH_MAX_MB = 64;
const SAMPLE_MS = 10_000;
const MEMBER_LIFE_MS = 12_000;
const HONEST_EVERY_MS = 250;
const MINUTE_MS = 60_000;
const MB = 1e6;
/** Gauges that must be 0 after all visitors have left. */
const GAUGES = ['tunnel_active_connections', 'tunnel_active_streams', 'tunnel_queued_bytes'];

const HOSTS = [
  'web.localhost',
  'web.localhost',
  'calls.localhost',
  'pool.localhost',
  'nobody.localhost',
  'elsewhere.example',
];

const residentMb = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1000;

/** Returns the current resources of the edge and the client. */
const look = async (stack, client) => {
  const seen = await stack.metrics();
  return {
    residentMb: seen.process_resident_memory_bytes / MB,
    clientMb: residentMb(client.pid),
    descriptors: seen.process_open_fds,
    gauges: Object.fromEntries(GAUGES.map((name) => [name, seen[name] ?? 0])),
    internalErrors: seen.tunnel_internal_errors_total ?? 0,
    restarts: seen.tunnel_restarts_total ?? 0,
  };
};

const isQuiet = ({ gauges }) => Object.values(gauges).every((value) => value === 0);
const textOf = ({ residentMb: mb, clientMb, descriptors, gauges }) =>
  `edge ${mb.toFixed(0)} MB, first client ${clientMb.toFixed(0)} MB, ${descriptors} descriptors, ${gauges.tunnel_active_connections} connections, ${gauges.tunnel_active_streams} streams`;

/** A visitor beside the misbehaving visitors that must always get the right response. Errors are printed when they happen. */
class HonestVisitor {
  asked = 0;
  wrong = [];
  #stack;
  #say;
  #timer;

  constructor(stack, say) {
    const port = stack.portOf('https_url');
    this.#stack = stack;
    this.#say = say;
    this.#timer = setInterval(() => this.#ask(port), HONEST_EVERY_MS);
  }

  #ask(port) {
    this.asked += 1;
    const options = { port, host: '127.0.0.1', path: '/ok', headers: { host: 'web.localhost' }, agent: false };
    const asked = request({ ...options, rejectUnauthorized: false, timeout: 20_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('error', (error) => this.#isWrong(error.message));
      response.on('end', () => {
        if (response.statusCode !== 200 || text !== 'ok') this.#isWrong(`${response.statusCode} ${text.slice(0, 100)}`);
      });
    });
    asked.on('timeout', () => void this.#giveUp(asked));
    asked.on('error', (error) => this.#isWrong(error.message));
    asked.end();
  }

  async #giveUp(asked) {
    const state = await this.#stateOf(asked.socket).catch(({ message }) => message);
    asked.destroy(new Error(`no answer within 20 s: ${state}`));
  }

  #isWrong(what) {
    this.wrong.push(what);
    this.#say(`the honest visitor: ${what}`);
  }

  /** Returns the state of a connection from the edge's list. */
  async #stateOf({ localPort }) {
    const { connections } = JSON.parse(await this.#stack.connections());
    return JSON.stringify(connections.find(({ peer }) => peer === `127.0.0.1:${localPort}`) ?? 'no such connection');
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/** Kills and restarts the members in turn, so that one of the two is always running or starting. */
const killMembers = async (members, isOver) => {
  for (let turn = 0; !isOver(); turn += 1) {
    await pause(MEMBER_LIFE_MS);
    if (isOver()) return;
    const member = members[turn % members.length];
    await member.kill();
    await member.start();
  }
};

const startClients = async (stack) => {
  const [web, calls, bytes] = await Promise.all([startHttp1Service(), startHttp2Service(), startTcpService()]);
  const lasting = [
    new Client(stack, ['http', String(web.port), '--subdomain', 'web']),
    new Client(stack, ['http', String(calls.port), '--subdomain', 'calls', '--local-protocol', 'h2c']),
    new Client(stack, ['tcp', String(bytes.port)]),
  ];
  const members = [1, 2].map(() => new Client(stack, ['http', String(web.port)], 'pool'));
  for (const client of [...lasting, ...members]) await client.start();
  return { first: lasting[0], members };
};

const sample = async (stack, client, minutes, say) => {
  const samples = [];
  for (let at = SAMPLE_MS; at <= minutes * MINUTE_MS; at += SAMPLE_MS) {
    await pause(SAMPLE_MS);
    const seen = await look(stack, client);
    samples.push({ at, ...seen });
    say(textOf(seen));
  }
  return samples;
};

const settle = async (stack, client, before) => {
  let last;
  const isBack = async () => {
    last = await look(stack, client);
    return isQuiet(last) && last.descriptors <= before.descriptors;
  };
  await until('everything is over', isBack, { timeoutMs: SETTLE_MS, everyMs: 1000 }).catch(() => {});
  return last;
};

await runScript(
  {
    name: 'soak',
    usage: USAGE,
    options: { minutes: 10, seed: (Date.now() % 1_000_000) + 1, rate: 16 },
    limitSecs: ({ minutes }) => minutes * 60 + 300,
  },
  async ({ values: { minutes, seed, rate }, say, check }) => {
    say(`seed ${seed}`);
    const stack = await startStack();
    const { first, members } = await startClients(stack);
    const where = {
      httpPort: stack.portOf('http_url'),
      httpsPort: stack.portOf('https_url'),
      controlPort: stack.portOf('control'),
      restPort: stack.portOf('api_url'),
      platformPort: stack.portOf('platform_url'),
      tcpPort: stack.tcpPort,
      hosts: HOSTS,
    };
    const before = await look(stack, first);
    say(`before: ${textOf(before)}`);
    let isOver = false;
    const visitors = new Visitors(new Chance(seed), where);
    const sending = setInterval(() => visitors.send(), 1000 / rate);
    const honest = new HonestVisitor(stack, say);
    const killing = killMembers(members, () => isOver);
    const samples = await sample(stack, first, minutes, say);
    isOver = true;
    clearInterval(sending);
    honest.stop();
    visitors.leaveAll();
    await killing;
    const after = await settle(stack, first, before);
    say(`after: ${textOf(after)}; sent: ${JSON.stringify(visitors.counts)}`);
    if (!isQuiet(after)) say(`left behind: ${await stack.connections()}`);
    check(isQuiet(after), `the gauges are back at 0: ${JSON.stringify(after.gauges)}`);
    check(after.descriptors <= before.descriptors, `no descriptor stays: ${before.descriptors} → ${after.descriptors}`);
    const settled = samples.find(({ at }) => at >= MINUTE_MS) ?? samples.at(-1);
    for (const [who, key] of Object.entries({ edge: 'residentMb', 'first client': 'clientMb' })) {
      const grown = samples.at(-1)[key] - settled[key];
      check(grown <= GROWTH_MAX_MB, `${who}: ${grown.toFixed(0)} MB more than after the first minute`);
    }
    check(
      honest.wrong.length === 0,
      `${honest.asked} answers to the honest visitor, wrong: ${honest.wrong.slice(0, 5)}`,
    );
    check(after.internalErrors === 0, `internal errors: ${after.internalErrors}`);
    const crashes = existsSync(stack.crashesDir) ? readdirSync(stack.crashesDir) : [];
    check(after.restarts === 0 && crashes.length === 0, `restarts: ${after.restarts}, crashes: ${crashes}`);
    check((await stack.close()) === 'exit code 0', `the stack ends as asked: ${stack.child.exit}`);
    return `${minutes} minutes, seed ${seed}`;
  },
);
