// Checks that visitors do not notice a dying member: under wrk and a stream of POSTs, a client is killed and a local service is stopped,
// and both return, ten times in a row. Every failed request is classified, and only two kinds of failure are allowed.
import { setTimeout as pause } from 'node:timers/promises';
import { throwAwayFolder } from '../../../bench/lib/children.mjs';
import { findWrk } from '../../../bench/lib/wrk.mjs';
import { startEdge } from '../lib/edge.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { LocalService } from './lib/local-service.mjs';
import { Member } from './lib/member.mjs';
import { PostTrickle } from './lib/post-trickle.mjs';
import { WrkVisitors } from './lib/wrk-visitors.mjs';

const USAGE = `usage: node tests/tools/groups/failover.mjs [--rounds N] [--connections N]
4 members under wrk (Debian: apt install wrk) and POSTs; 10 rounds over 24 connections: about two minutes.`;

const MEMBERS = 4;
const GROUP = 'failover';
const SECONDS_PER_ROUND = 30;
const HEALTH = [
  '--health',
  'http:/healthz',
  '--health-interval',
  '1',
  '--health-timeout',
  '1',
  '--health-max-failed',
  '2',
];
/** Time around the death of a member in which its POSTs may fail. */
const DYING_MS = 1000;

const countBy = (things, nameOf) => {
  const counts = new Map();
  for (const thing of things) counts.set(nameOf(thing), (counts.get(nameOf(thing)) ?? 0) + 1);
  return counts;
};

const healthyMembers = (edge, members, healthy) =>
  until(
    `${healthy} of ${members} members are healthy`,
    async () => {
      const group = await edge.group(GROUP);
      return group?.member_count === members && group.healthy_count === healthy;
    },
    { timeoutMs: 20_000 },
  );

/** Kills a client and stops the local service of a different member. The order alternates between rounds. */
async function disturb(round, { edge, members, services, deaths, say }) {
  const client = round % MEMBERS;
  const service = (client + 1 + (round % (MEMBERS - 1))) % MEMBERS;
  const die = async (what) => {
    deaths.push(Date.now());
    await what();
    deaths.push(Date.now());
  };
  const acts = [() => members[client].kill(), () => services[service].stop()];
  if (round % 2 === 1) acts.reverse();
  await die(acts[0]);
  await pause(100 + 400 * Math.random());
  await die(acts[1]);
  await healthyMembers(edge, MEMBERS - 1, MEMBERS - 2);
  await pause(500);
  await Promise.all([members[client].start(), services[service].start()]);
  await healthyMembers(edge, MEMBERS, MEMBERS);
  await pause(500);
  say(`round ${round + 1}: client ${client + 1} killed, service ${service + 1} stopped, both are back`);
}

function checkVisits({ wrk, seen }, check) {
  const { 200: answered = 0, ...others } = seen.answers;
  check(answered > 1000, `GET: ${answered} answered with 200 over ${seen.connections} connections`);
  check(Object.keys(others).length === 0, `GET: other answers: ${JSON.stringify(others)}`);
  check(seen.failed === 0, `GET: ${seen.failed} connections ended before the response to a request had begun`);
  check(
    seen.refused === 0 && seen.closedUnsaid === 0 && seen.odd.length === 0,
    `GET: no connection refused or ended unsaid`,
  );
  check(
    wrk.read === seen.cut,
    `wrk: ${wrk.read} read errors, of ${seen.cut} responses that were cut after they had begun`,
  );
  check(wrk.status === 0, `wrk: ${wrk.status} answers that are not 2xx`);
  check(
    wrk.connect + wrk.write + wrk.timeout === 0,
    `wrk: connect ${wrk.connect}, write ${wrk.write}, timeout ${wrk.timeout}`,
  );
}

function checkPosts(posts, services, deaths, check) {
  const kinds = countBy(posts, ({ kind }) => kind);
  const received = services.flatMap((service) =>
    service.received().map((line) => ({ ...line, service: service.name })),
  );
  const begun = countBy(
    received.filter(({ word }) => word === 'begun'),
    ({ id }) => id,
  );
  const whole = new Map(received.filter(({ word }) => word === 'whole').map((line) => [line.id, line]));
  const isAllowed = ({ kind }) => kind === 'answered' || kind === 'cut' || kind === 'died after it was sent';
  const bad = posts.filter((post) => !isAllowed(post));
  check(bad.length === 0, `POST: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ')}`);
  for (const { id, kind, code } of bad.slice(0, 5)) check(false, `POST ${id}: ${kind} (${code})`);
  const twice = [...begun].filter(([, count]) => count > 1);
  check(twice.length === 0, `POST: ${twice.length} were received twice`);
  const answered = posts.filter(({ kind }) => kind === 'answered');
  const unproven = answered.filter(({ id, sum, answer }) => {
    const line = whole.get(id);
    return begun.get(id) !== 1 || line?.sum !== sum || line.service !== answer.service || answer.sum !== sum;
  });
  check(
    answered.length > 100 && unproven.length === 0,
    `POST: ${answered.length} answered, ${answered.length - unproven.length} of them received exactly once, whole`,
  );
  const died = posts.filter(({ kind }) => kind === 'cut' || kind === 'died after it was sent');
  const isNear = ({ beginMs, endMs }) => deaths.some((at) => at >= beginMs - DYING_MS && at <= endMs + DYING_MS);
  check(died.every(isNear), `POST: ${died.length} broke off, each while a member died`);
  return kinds;
}

await runScript(
  {
    name: 'failover',
    usage: USAGE,
    options: { rounds: 10, connections: 24 },
    limitSecs: ({ rounds }) => 60 + SECONDS_PER_ROUND * rounds,
  },
  async ({ values: { rounds, connections }, say, check }) => {
    const { missing } = findWrk();
    if (missing !== undefined) throw new Error('wrk is not installed (Debian: apt install wrk)');
    const folder = throwAwayFolder();
    const edge = await startEdge();
    const numbers = Array.from({ length: MEMBERS }, (_, index) => index + 1);
    const services = await Promise.all(numbers.map((number) => LocalService.start(`service-${number}`, folder)));
    const flags = [...HEALTH, '--quiet', '--no-inspect'];
    const members = await Promise.all(
      services.map(({ port }) => new Member(edge, { protocol: 'http', localPort: port, group: GROUP, flags }).start()),
    );
    await healthyMembers(edge, MEMBERS, MEMBERS);
    const { host } = members[0];
    const limitSecs = 60 + SECONDS_PER_ROUND * rounds;
    const visitors = await WrkVisitors.start({ edge, host, connections, limitSecs });
    const trickle = new PostTrickle({ host, port: edge.httpPort });
    say(`${MEMBERS} members; wrk over ${connections} connections, and POSTs`);
    await pause(1000);
    const deaths = [];
    for (let round = 0; round < rounds; round += 1) await disturb(round, { edge, members, services, deaths, say });
    check(visitors.isRunning, 'wrk ran through all of it');
    await trickle.stop();
    const visits = await visitors.stop();
    checkVisits(visits, check);
    const kinds = checkPosts(trickle.posts, services, deaths, check);
    await Promise.all(members.map((member) => member.close()));
    await edge.close();
    const { cut } = visits.seen;
    return `${rounds} rounds: ${visits.wrk.requests} GETs, ${cut} cut after their response had begun, 0 failed; ${[...kinds].map(([kind, count]) => `${count} POSTs ${kind}`).join(', ')}, 0 received twice`;
  },
);
