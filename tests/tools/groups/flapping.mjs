// Tests members that change their health every second for five minutes: all counters agree, every downward transition of a group without
// another healthy member sends an alert, other transitions send none, and the edge's memory does not grow.
import { setTimeout as pause } from 'node:timers/promises';
import { startEdge } from '../lib/edge.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { EventStream } from './lib/event-stream.mjs';
import { startFlappingService } from './lib/flapping-service.mjs';
import { Member } from './lib/member.mjs';
import { startReceiver } from './lib/receiver.mjs';
import { roomyEdge } from './lib/roomy-edge.mjs';

const USAGE = `usage: node tests/tools/groups/flapping.mjs [--seconds N]
One member alone in a group and one beside a steady member, both flapping every second, for 300 s (--seconds).`;

const FLAP_MS = 1000;
/** Number of health events that the edge keeps per tunnel. Memory is measured only after the history is full. */
const HISTORY = 50;
const SAMPLE_EVERY = 30;
/** Maximum memory growth: far below one stored event per transition, but above the usual variation of the heap. */
const GROWTH_MAX_BYTES = 512 * 1024;
const HEALTH = [
  ...['--health', 'http:/', '--health-interval', '0.15', '--health-timeout', '0.9', '--health-max-failed', '1'],
  ...['--quiet', '--no-inspect'],
];

/** A flapping member of a separate group, with its event stream and its alert receiver. */
class Flapper {
  name;
  receiver;
  service;
  member;
  stream;

  static async start(edge, name, host) {
    const flapper = new Flapper();
    flapper.name = name;
    flapper.receiver = await startReceiver('good', host);
    flapper.service = await startFlappingService();
    const flags = [...HEALTH, '--alert-webhook', flapper.receiver.url];
    const localPort = flapper.service.port;
    flapper.member = await new Member(edge, { protocol: 'http', localPort, group: name, flags }).start();
    await until(`${name} is healthy`, async () => (await edge.group(name))?.healthy_count >= 1);
    flapper.stream = await EventStream.open(edge, `/api/groups/http/${name}/events`);
    return flapper;
  }

  /** Health reports that the member's client sent to the edge, including the first healthy report. */
  get told() {
    return this.member.eventsOf('health').map(({ healthy }) => healthy);
  }

  get heard() {
    return this.stream.eventsOf('group_event').map(({ data }) => data);
  }
}

/** Changes the health of both services every second, and waits until the clients have reported each change. */
async function flap(edge, flappers, seconds, { say, check }) {
  const samples = [];
  for (let second = 1; second <= seconds; second += 1) {
    for (const { service } of flappers) service.isWell = !service.isWell;
    await pause(FLAP_MS);
    const isTold = () => flappers.every(({ told }) => told.length >= second + 1);
    await until(`change ${second} is told`, isTold, { timeoutMs: 5000, everyMs: 10 });
    if (second <= HISTORY || second % SAMPLE_EVERY !== 0) continue;
    samples.push(await edge.memory());
    say(`${second} edges; the edge holds ${(samples.at(-1).heldBytes / 1e6).toFixed(2)} MB`);
  }
  const told = flappers.map((flapper) => flapper.told.length - 1);
  check(
    told.every((count) => count === seconds),
    `${seconds} changes of each service; their clients told ${told.join(' and ')}`,
  );
  return samples;
}

const isAlternating = (healths) => healths.every((healthy, index) => index === 0 || healthy !== healths[index - 1]);

async function checkFlapper(edge, flapper, { seconds, alerts, members }, check) {
  const { name, member, stream, receiver } = flapper;
  const downs = flapper.told.filter((healthy) => !healthy).length;
  // The stream was opened after the first report, so that report is missing in it.
  await until(`${name}: all events`, () => flapper.heard.length >= seconds, { timeoutMs: 5000 });
  const healths = flapper.heard.map(({ healthy }) => healthy);
  check(healths.length === seconds && isAlternating(healths), `${name}: ${healths.length} events for ${seconds} edges`);
  const ids = stream.eventsOf('group_event').map(({ id }) => Number(id));
  check(
    ids.every((id, index) => index === 0 || id > ids[index - 1]),
    `${name}: the ids of events rise`,
  );
  check(stream.eventsOf('lagged').length === 0 && !stream.ended, `${name}: its stream missed nothing and is open`);
  const counts = flapper.heard.map(({ healthy, healthy_count: count }) => count - (healthy ? 1 : 0));
  check(
    counts.every((others) => others === members - 1),
    `${name}: events carry the counts after the change`,
  );
  await until(`${name}: all alerts`, () => receiver.alerts.length >= alerts, { timeoutMs: 6000 });
  check(receiver.alerts.length === alerts, `${name}: ${receiver.alerts.length} alerts, ${downs} downward edges`);
  const history = await edge.api(`/api/tunnels/${member.tunnelId}/health-events`);
  const kept = history.map(({ healthy }) => healthy);
  const last = flapper.told.slice(-HISTORY);
  check(JSON.stringify(kept) === JSON.stringify(last), `${name}: the last ${kept.length} health events, in order`);
  const summary = await member.summary();
  check(summary.total_health_failures === downs, `${name}: total_health_failures ${summary.total_health_failures}`);
}

async function checkSeries(edge, flappers, check) {
  const failures = await edge.series('tunnel_group_health_failures_total');
  for (const { name, told } of flappers) {
    const [, count] = [...failures].find(
      ([labels]) => labels.includes(`group="${name}"`) && labels.includes('kind="http"'),
    );
    const downs = told.filter((healthy) => !healthy).length;
    check(count === downs, `${name}: tunnel_group_health_failures_total ${count}`);
  }
}

function checkHeld(samples, handles, check) {
  const [first] = samples;
  const last = samples.at(-1);
  if (samples.length < 2) return 'too short for a look at the heap';
  const grown = last.heldBytes - first.heldBytes;
  check(
    grown < GROWTH_MAX_BYTES,
    `the edge holds ${(grown / 1024).toFixed(0)} KB more than ${samples.length - 1} looks before`,
  );
  const kinds = [...new Set([...Object.keys(handles.before), ...Object.keys(handles.after)])];
  const more = kinds.filter((kind) => (handles.after[kind] ?? 0) > (handles.before[kind] ?? 0) + 2);
  check(more.length === 0, `no more sockets or timers than before: ${JSON.stringify(handles.after)}`);
  return `the heap grew by ${(grown / 1024).toFixed(0)} KB`;
}

await runScript(
  { name: 'flapping', usage: USAGE, options: { seconds: 300 }, limitSecs: ({ seconds }) => 90 + 2 * seconds },
  async ({ values: { seconds }, say, check }) => {
    const operator = await startReceiver('good', '127.0.0.9');
    const edge = await startEdge({ server: await roomyEdge(), loadBalancing: `alert_webhook_url = "${operator.url}"` });
    const steady = await startFlappingService();
    const flags = ['--quiet', '--no-inspect'];
    await new Member(edge, { protocol: 'http', localPort: steady.port, group: 'beside', flags }).start();
    const alone = await Flapper.start(edge, 'alone', '127.0.0.2');
    const beside = await Flapper.start(edge, 'beside', '127.0.0.3');
    await until('both members of `beside` are healthy', async () => (await edge.group('beside')).healthy_count === 2);
    await until('both have told that they are well', () => alone.told.length === 1 && beside.told.length === 1);
    const before = await edge.handles();
    const flappers = [alone, beside];
    const samples = await flap(edge, flappers, seconds, { say, check });
    const downs = Math.ceil(seconds / 2);
    await checkFlapper(edge, alone, { seconds, alerts: downs, members: 1 }, check);
    await checkFlapper(edge, beside, { seconds, alerts: 0, members: 2 }, check);
    check(operator.alerts.length === downs, `the operator got ${operator.alerts.length} alerts`);
    await checkSeries(edge, flappers, check);
    const held = checkHeld(samples, { before, after: await edge.handles() }, check);
    for (const { stream } of flappers) stream.close();
    await edge.close();
    return `${seconds} edges of each member: as many events, ${downs} alerts of the lonely one and 0 of the other; ${held}`;
  },
);
