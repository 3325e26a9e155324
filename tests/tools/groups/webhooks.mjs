// Checks that alerts never delay the edge: while receivers do not answer, reset, or respond slowly, frames of other clients are handled
// as fast as with working receivers, and the next alert is still sent.
import { setTimeout as pause } from 'node:timers/promises';
import { median, percentile } from '../../../bench/lib/statistics.mjs';
import { startEdge } from '../lib/edge.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { ControlClient } from './lib/control-client.mjs';
import { startReceiver } from './lib/receiver.mjs';
import { roomyEdge } from './lib/roomy-edge.mjs';

const USAGE = `usage: node tests/tools/groups/webhooks.mjs [--seconds N]
Receivers that never answer, reset, or drip, 6 s each (--seconds) in turn with good ones; about a minute in all.`;

const GROUPS = 24;
const ALERTS_PER_SECOND = 50;
const ASK_EVERY_MS = 4;
/** Maximum ratio to working receivers with the same alerts. Below the floors a ratio reflects only the machine. */
const RATIO_MAX = 2;
const FLOOR_MS = { p50: 1, p99: 10 };
/** Maximum delay of a frame, far below the 5 s that an alert may take. */
const WORST_MAX_MS = 500;
const ALERT_TIMEOUT_MS = 5000;

/** Produces alerts for a kind of receiver at a steady pace: groups with a single member become unhealthy and healthy in turn. */
class AlertSource {
  edges = 0;
  #client;
  #members = [];
  #isOver = false;
  #loop = Promise.resolve();

  static async make(edge, kind, url) {
    const source = new AlertSource();
    source.#client = await ControlClient.enter(edge);
    for (let index = 0; index < GROUPS; index += 1) {
      const check = { type: 'tcp', ...(url === null ? {} : { alert_webhook: url }) };
      source.#members.push(await source.#client.join(`${kind}-${index}`, { health_check: check }));
    }
    return source;
  }

  begin() {
    this.#isOver = false;
    this.#loop = this.#run();
  }

  async stop() {
    this.#isOver = true;
    await this.#loop;
    await this.#client.ping();
  }

  /** Triggers an alert. */
  flip(index = this.edges) {
    const member = this.#members[index % GROUPS];
    this.#client.healthy(member);
    this.#client.unhealthy(member);
    this.edges += 1;
  }

  close() {
    return this.#client.close();
  }

  async #run() {
    const begunMs = performance.now();
    for (let count = 1; !this.#isOver; count += 1) {
      this.flip();
      await pause(Math.max(0, begunMs + (count * 1000) / ALERTS_PER_SECOND - performance.now()));
    }
  }
}

/** Measures round trips of an unrelated client, which sends health reports, each followed by a Ping. */
async function roundTrips(bystander, seconds) {
  const times = [];
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    bystander.client.healthy(bystander.tunnelId);
    times.push(await bystander.client.ping());
    await pause(ASK_EVERY_MS);
  }
  return times;
}

/** Measures each alert source for a second in turn, so that other load on the machine affects both equally. */
async function inTurn(bystander, sources, seconds) {
  const times = sources.map(() => []);
  for (let second = 0; second < seconds; second += 1) {
    for (const [index, source] of sources.entries()) {
      source.begin();
      times[index].push(...(await roundTrips(bystander, 1)));
      await source.stop();
    }
  }
  return times.map(figuresOf);
}

function figuresOf(times) {
  const sorted = [...times].sort((a, b) => a - b);
  return { p50: median(sorted), p99: percentile(sorted, 0.99), worst: sorted.at(-1), count: sorted.length };
}

const words = ({ p50, p99, worst, count }) =>
  `p50 ${p50.toFixed(2)}, p99 ${p99.toFixed(2)}, slowest ${worst.toFixed(1)} ms of ${count}`;

function compare(kind, [times, good], check) {
  const ratio = (name) => Math.max(times[name], FLOOR_MS[name]) / Math.max(good[name], FLOOR_MS[name]);
  const text = `${kind}: round trip ${words(times)}; with good ones in turn ${words(good)}`;
  const isAsGood = ratio('p50') <= RATIO_MAX && ratio('p99') <= RATIO_MAX;
  check(isAsGood && times.worst < WORST_MAX_MS, text);
  return `${kind} ${(times.p50 / good.p50).toFixed(2)} (p99 ${(times.p99 / good.p99).toFixed(2)})`;
}

/** Checks that a working receiver on a different host gets an alert at once, while all slots of the failing host are taken. */
async function checkNext(good, kind, check) {
  const before = good.receiver.alerts.length;
  const begun = performance.now();
  good.source.flip();
  await until('the next alert', () => good.receiver.alerts.length === before + 1, { timeoutMs: 3000, everyMs: 5 });
  const tookMs = performance.now() - begun;
  check(tookMs < 1000, `${kind} receivers: the next alert to a good one took ${tookMs.toFixed(0)} ms`);
}

async function outcomes(edge, destination) {
  const counts = {};
  for (const [labels, value] of await edge.series('tunnel_alerts_total')) {
    if (!labels.includes(`destination="${destination}"`) || value === 0) continue;
    counts[/outcome="([^"]+)"/.exec(labels)[1]] = value;
  }
  return counts;
}

const sum = (counts) => Object.values(counts).reduce((total, count) => total + count, 0);

/** Checks that every alert has an outcome after the timeout of the last alert. */
async function checkOutcomes(edge, { operator, sources }, { say, check }) {
  const edges = sources.reduce((total, source) => total + source.edges, 0);
  const ends = async (destination) => {
    const counts = await outcomes(edge, destination);
    return sum(counts) === edges && counts;
  };
  const tenant = await until(`${edges} outcomes`, () => ends('tenant'), { timeoutMs: ALERT_TIMEOUT_MS + 3000 });
  say(`alerts of tenants: ${JSON.stringify(tenant)}`);
  const ours = await ends('operator');
  check(ours.delivered === edges, `all ${edges} alerts reached the operator: ${JSON.stringify(ours)}`);
  check(operator.alerts.length === edges, `the operator's receiver got ${operator.alerts.length}`);
  const { delivered = 0, timeout = 0, failed = 0 } = tenant;
  check(delivered > 0 && timeout > 0 && failed > 0, 'alerts were delivered, timed out and failed, as meant');
}

/** Tests a kind of failing receiver. Returns its ratio and the source of its alerts. */
async function tryKind({ kind, host, edge, bystander, good, seconds }, { check }) {
  const bad = await startReceiver(kind, host);
  const source = await AlertSource.make(edge, kind, bad.url);
  const ratio = compare(kind, await inTurn(bystander, [source, good.source], seconds), check);
  source.begin();
  await pause(500);
  await checkNext(good, kind, check);
  await source.stop();
  const heard = bad.alerts.length;
  const flipAgain = () => {
    source.flip();
    return bad.alerts.length > heard;
  };
  const timeoutMs = ALERT_TIMEOUT_MS + 1000;
  await until(`the ${kind} one is told again once it had its time`, flipAgain, { timeoutMs, everyMs: 250 });
  check(
    heard > 0,
    `${kind}: it was sent ${bad.alerts.length} alerts of ${source.edges}, the last when it had room again`,
  );
  return { ratio, source };
}

await runScript(
  { name: 'webhooks', usage: USAGE, options: { seconds: 6 }, limitSecs: ({ seconds }) => 90 + 10 * seconds },
  async ({ values: { seconds }, say, check }) => {
    const operator = await startReceiver('good', '127.0.0.9');
    const edge = await startEdge({ server: await roomyEdge(), loadBalancing: `alert_webhook_url = "${operator.url}"` });
    const client = await ControlClient.enter(edge);
    const bystander = { client, tunnelId: await client.join('bystander', { health_check: { type: 'tcp' } }) };
    const receiver = await startReceiver('good', '127.0.0.2');
    const good = { receiver, source: await AlertSource.make(edge, 'good', receiver.url) };
    await inTurn(bystander, [good.source], 2);
    say(`no alerts: round trip ${words(figuresOf(await roundTrips(bystander, 2)))}`);
    say(`now ${ALERTS_PER_SECOND} alerts a second, to bad receivers and good ones in turn`);
    const sources = [good.source];
    const ratios = [];
    for (const [index, kind] of ['silent', 'resets', 'slow'].entries()) {
      const host = `127.0.0.${3 + index}`;
      const { ratio, source } = await tryKind({ kind, host, edge, bystander, good, seconds }, { check });
      ratios.push(ratio);
      sources.push(source);
    }
    await checkOutcomes(edge, { operator, sources }, { say, check });
    await Promise.all(sources.map((source) => source.close()));
    await edge.close();
    return `round trip of another client's frames, against good receivers: ${ratios.join(', ')}; every next alert went out`;
  },
);
