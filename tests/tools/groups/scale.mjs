// Checks that the cost of groups does not depend on their number: 10,000 members in a single group and 2,000 more groups on the same
// edge. Measures processor time of joins and leaves, memory per member, the duration of GET /api/groups under load, and memory after all
// members have left.

import { setTimeout as pause } from 'node:timers/promises';
import { startEdge } from '../lib/edge.mjs';
import { inParallel } from '../lib/in-parallel.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { ControlClient } from './lib/control-client.mjs';

const USAGE = `usage: node tests/tools/groups/scale.mjs [--members N] [--groups N]
10,000 members in one tcp group and 2,000 http groups of one member; about two minutes.`;

/** Tunnels per session: the default maximum of an edge. */
const PER_SESSION = 100;
const CPU_MAX_MS = 1;
const BYTES_MAX = 8 * 1024;
const LIST_MAX_MS = 1000;
const LISTS = 10;
/** Load during the lists: joins, reports and leaves per second over the sessions of the small groups. */
const ACTS_PER_SECOND = 1000;
const ACTS_PER_TURN = 5;
const FLIPS = 500;
/**
 * Maximum bytes left behind per member. The true value is zero; the margin is for variation of the heap, and for ids that are remembered
 * for a while.
 */
const LEAK_MAX_BYTES = 150;
const BIG = 'big';
const RESUME_WINDOW_MS = 30_000;

const isRight = (value, max) => value <= max;
const kb = (bytes) => `${(bytes / 1024).toFixed(2)} KB`;
const ms = (value) => `${value.toFixed(3)} ms`;

async function enter(edge, count) {
  return Promise.all(Array.from({ length: Math.ceil(count / PER_SESSION) }, () => ControlClient.enter(edge)));
}

/** Lets all members join, with the sessions in parallel. Returns { client, tunnelId } for each member. */
async function joinAll(clients, count, fieldsOf) {
  const members = [];
  await inParallel(clients.length, clients.length, async (at) => {
    for (let index = at; index < count; index += clients.length) {
      const { group, ...fields } = fieldsOf(index);
      members.push({ client: clients[at], tunnelId: await clients[at].join(group, fields) });
    }
  });
  return members;
}

const leaveAll = (members) =>
  inParallel(members.length, 8, (index) => members[index].client.leave(members[index].tunnelId));

/** Measures the edge's processor time while `act` runs, divided by `count`. */
async function cpuEach(edge, count, act) {
  const before = await edge.cpu();
  const result = await act();
  return { each: ((await edge.cpu()).totalMs - before.totalMs) / count, result };
}

const bigMember = () => ({ group: BIG, protocol: 'tcp', health_check: { type: 'tcp', interval_secs: 10 } });
const smallGroup = (index) => ({ group: `group-${index}` });

/** Measures the worst case for an edge: no other member is healthy, so that each failure affects the whole group. */
async function checkFlips(edge, { client, tunnelId }, check) {
  const { each } = await cpuEach(edge, FLIPS, async () => {
    for (let flip = 0; flip < FLIPS; flip += 1) {
      client.healthy(tunnelId);
      client.unhealthy(tunnelId);
      await client.ping();
    }
  });
  check(isRight(each, CPU_MAX_MS), `the only healthy member comes and falls in ${ms(each)} of CPU`);
}

async function allHealthy(edge, members) {
  for (const { client, tunnelId } of members) client.healthy(tunnelId);
  const counts = async () => (await edge.group(BIG)).healthy_count === members.length;
  await until('all members are healthy', counts, { timeoutMs: 30_000, everyMs: 500 });
}

async function joinEverything(edge, stage, { members, groups }, { say, check }) {
  const empty = (await edge.memory()).heldBytes;
  const early = await cpuEach(edge, members / 10, () => joinAll(stage.many, members / 10, bigMember));
  const late = await cpuEach(edge, members * 0.9, () => joinAll(stage.many, members * 0.9, bigMember));
  stage.big = [...early.result, ...late.result];
  await checkFlips(edge, stage.big[0], check);
  await allHealthy(edge, stage.big);
  const full = (await edge.memory()).heldBytes;
  const each = (full - empty) / members;
  say(`${members} members in one group: CPU of a join ${ms(early.each)} in the first tenth, ${ms(late.each)} later`);
  check(isRight(Math.max(early.each, late.each), CPU_MAX_MS), `a join takes under ${CPU_MAX_MS} ms of CPU`);
  check(isRight(each, BYTES_MAX), `a member beside its session takes ${kb(each)}, at most 8 KB`);
  const small = await cpuEach(edge, groups, () => joinAll(stage.few, groups, smallGroup));
  const smallEach = ((await edge.memory()).heldBytes - full) / groups;
  check(isRight(small.each, CPU_MAX_MS), `a group begins with its member in ${ms(small.each)} of CPU`);
  check(isRight(smallEach, BYTES_MAX), `a group with its member takes ${kb(smallEach)}, at most 8 KB`);
  stage.small = small.result;
  return { joinMs: late.each, memberBytes: each };
}

/** Lets members join, leave and change their health at a steady pace, until the returned function is called. */
function churn(stage) {
  const state = { acts: 0, slowestPingMs: 0, isOver: false };
  const everyMs = (stage.few.length * ACTS_PER_TURN * 1000) / ACTS_PER_SECOND;
  const loop = async (client) => {
    let dueMs = performance.now() + everyMs * Math.random();
    while (!state.isOver) {
      await pause(Math.max(0, dueMs - performance.now()));
      dueMs += everyMs;
      const tunnelId = await client.join(BIG, bigMember());
      client.healthy(tunnelId);
      client.unhealthy(tunnelId);
      client.healthy(tunnelId);
      await client.leave(tunnelId);
      state.slowestPingMs = Math.max(state.slowestPingMs, await client.ping());
      state.acts += ACTS_PER_TURN;
    }
  };
  const loops = stage.few.map(loop);
  const stop = async () => {
    state.isOver = true;
    await Promise.all(loops);
    return state;
  };
  return stop;
}

async function timeLists(edge, { members, groups }, count) {
  const times = [];
  let bytes = 0;
  for (let index = 0; index < count; index += 1) {
    const begun = performance.now();
    const answer = await fetch(`${edge.run.api_url}/api/groups`, { headers: edge.headers });
    const text = await answer.text();
    times.push(performance.now() - begun);
    bytes = text.length;
    const list = JSON.parse(text);
    const listed = list.find(({ name }) => name === BIG)?.members.length ?? 0;
    if (list.length !== groups + 1 || listed < members) throw new Error(`${list.length} groups, ${listed} members`);
  }
  return { slowest: Math.max(...times), bytes };
}

async function checkLists(edge, stage, size, { say, check }) {
  const { each: cpuMs, result: quiet } = await cpuEach(edge, 3, () => timeLists(edge, size, 3));
  const begunMs = performance.now();
  const stop = churn(stage);
  const loaded = await timeLists(edge, size, LISTS);
  const { acts, slowestPingMs } = await stop();
  say(`GET /api/groups: ${(loaded.bytes / 1e6).toFixed(1)} MB for ${cpuMs.toFixed(0)} ms of CPU`);
  say(`while nothing else happens the slowest of 3 took ${quiet.slowest.toFixed(0)} ms`);
  const rate = (acts * 1000) / (performance.now() - begunMs);
  say(`under load: ${rate.toFixed(0)} joins, leaves and reports a second; slowest Ping ${slowestPingMs.toFixed(0)} ms`);
  check(
    isRight(loaded.slowest, LIST_MAX_MS),
    `under load the slowest of ${LISTS} took ${loaded.slowest.toFixed(0)} ms`,
  );
  return loaded.slowest;
}

/** Lets half of the members leave one by one, and the rest with their sessions. With `isCut` the connections are lost instead of closed. */
async function leaveEverything(edge, stage, isCut, { say, check }) {
  const half = stage.big.slice(0, stage.big.length / 2);
  const rest = stage.big.length - half.length;
  const single = await cpuEach(edge, half.length, () => leaveAll(half));
  const together = await cpuEach(edge, rest + stage.small.length, async () => {
    const clients = [...stage.many, ...stage.few];
    if (isCut) for (const client of clients) client.cut();
    else await Promise.all(clients.map((client) => client.close()));
    await until('all groups are gone', async () => (await edge.api('/api/groups')).length === 0);
  });
  say(`CPU of a leave: ${ms(single.each)} alone, ${ms(together.each)} with its session`);
  check(isRight(Math.max(single.each, together.each), CPU_MAX_MS), `a leave takes under ${CPU_MAX_MS} ms of CPU`);
  return single.each;
}

async function oneLife(edge, size, { isCut, ...tools }) {
  const stage = { many: await enter(edge, size.members), few: await enter(edge, size.groups), big: [], small: [] };
  const joined = await joinEverything(edge, stage, size, tools);
  const listMs = await checkLists(edge, stage, size, tools);
  const leaveMs = await leaveEverything(edge, stage, isCut, tools);
  if (isCut) {
    tools.say('the window in which lost sessions may come back passes');
    await pause(RESUME_WINDOW_MS + 2000);
  }
  return { ...joined, listMs, leaveMs };
}

async function checkLeft(edge, before, after, handles, size, check) {
  const leaked = (after.heldBytes - before.heldBytes) / (size.members + size.groups);
  check(isRight(leaked, LEAK_MAX_BYTES), `a second life leaves ${leaked.toFixed(0)} bytes a member behind`);
  const open = Object.entries(await edge.handles()).filter(([kind]) => /TCP|Server/.test(kind));
  const more = open.filter(([kind, count]) => count > (handles[kind] ?? 0) + 1);
  check(
    more.length === 0,
    `no socket or listener is left: ${open.map(([kind, count]) => `${count} ${kind}`).join(', ')}`,
  );
}

await runScript(
  { name: 'scale', usage: USAGE, options: { members: 10_000, groups: 2000 }, limitSecs: () => 600 },
  async ({ values: size, say, check }) => {
    const limits = `tunnels_per_session = ${2 * PER_SESSION}`;
    const edge = await startEdge({ limits });
    const handles = await edge.handles();
    say('the first life: everything is warm afterwards');
    await oneLife(edge, size, { isCut: false, say, check });
    const before = await edge.memory();
    say(`the edge holds ${(before.heldBytes / 1e6).toFixed(1)} MB; the second life`);
    const { joinMs, leaveMs, memberBytes, listMs } = await oneLife(edge, size, { isCut: true, say, check });
    const after = await edge.memory();
    await checkLeft(edge, before, after, handles, size, check);
    await edge.close();
    return `${size.members} members and ${size.groups} groups: join ${ms(joinMs)}, leave ${ms(leaveMs)} of CPU, ${kb(memberBytes)} a member, /api/groups in ${listMs.toFixed(0)} ms under load`;
  },
);
