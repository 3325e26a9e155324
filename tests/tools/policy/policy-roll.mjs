// A policy changes under wrk, again and again: in a group of three, member by member with rising revisions, and by `tunnel reload` on a tunnel that
// stands alone. No request may fail, and none may be served by a policy older than one whose registration was answered before the request began.
// Then rolls are interrupted: all sessions are cut in the middle of one, and the edge is killed there. Every member is back, and nobody is served
// without a policy.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { LastingEdge, startCutRelay } from './lib/lasting-edge.mjs';
import { Publisher, startService } from './lib/publisher.mjs';
import { Visitors, WrkLoad } from './lib/roll-visitors.mjs';

const USAGE = `usage: node tests/tools/policy/policy-roll.mjs [--revisions N] [--connections N] [--cuts N] [--kills N]
3 members and one alone, 20 revisions each over 16 connections of wrk and 8 that judge; then 5 rolls with all sessions cut
in their middle, and 3 with the edge killed there: about five minutes.`;

const MEMBERS = 3;
/** Those that look at every answer. */
const JUDGES = 8;
/** Between two changes, so that each of them serves. */
const REQUESTS_BETWEEN = 50;
const BACK_WITHIN_MS = 90_000;

const isWrkThere = spawnSync('wrk', ['--version']).error === undefined;

const entryOf = (group, local_port) => (revision, home) =>
  group === null
    ? { proto: 'http', local_port, subdomain: 'alone' }
    : {
        ...{ proto: 'http', local_port, group, group_key_file: join(home, 'group-key'), subdomain: group },
        policy_revision: revision,
      };

const startGroup = async (edge, { group, port, servers }) => {
  const members = [];
  for (let nth = 0; nth < MEMBERS; nth += 1) {
    members.push(await new Publisher(edge, entryOf(group, port), servers?.[nth]).start(0));
  }
  return members;
};

/** So many more were served, or something is wrong already. */
const moreServed = (visitors, count = REQUESTS_BETWEEN) => {
  const before = visitors.served;
  return until('visitors are served', () => visitors.served - before >= count || visitors.wrong.length > 0, {
    timeoutMs: BACK_WITHIN_MS,
  });
};

/** One change after the other, each settles when its registration was answered. */
async function roll(name, { revisions, edge, connections, publishers, check }) {
  const [{ host }] = publishers;
  const { httpPort: port } = edge;
  const wrk = isWrkThere ? new WrkLoad({ host, port, connections, limitSecs: 3600 }) : null;
  const visitors = new Visitors({ host, port, connections: JUDGES });
  for (let revision = 1; revision <= revisions; revision += 1) {
    for (const publisher of publishers) {
      await publisher.change(revision);
      visitors.answered = revision;
      await moreServed(visitors);
    }
  }
  await visitors.stop();
  const load = (await wrk?.stop()) ?? { requests: 0 };
  const { requests, ...errors } = load;
  const failed = Object.entries(errors).filter(([, count]) => count > 0);
  check(
    visitors.wrong.length === 0 && failed.length === 0,
    [
      `${name}: ${revisions} revisions, ${visitors.served} served and judged, ${visitors.turnedAway} strangers turned away`,
      isWrkThere ? `${requests} of wrk` : 'without wrk, which is not installed',
      ...visitors.words,
      ...failed.map(([kind, count]) => `${count} × wrk: ${kind}`),
    ].join('; '),
  );
  return visitors.served + requests;
}

/** `interrupt`: in the middle of each roll; `isKnown`: whether what was in force before it is known after it. */
async function interruptedRolls(name, { rolls, edge, members, service, first, interrupt, isKnown, check }) {
  const [leader, ...waiting] = members;
  const { host } = leader;
  const visitors = new Visitors({ host, port: edge.httpPort, connections: JUDGES, answered: first - 1, mayFail: true });
  for (let revision = first; revision < first + rolls; revision += 1) {
    await leader.change(revision);
    if (isKnown) visitors.answered = revision;
    await moreServed(visitors);
    // An edge that starts anew knows nothing of what was: the first to come back may be one that waits for its turn.
    if (!isKnown) visitors.answered = revision - 1;
    // The rest of the roll goes on meanwhile.
    const rest = Promise.all(waiting.map((member) => member.change(revision)));
    await interrupt();
    await rest;
    const areBack = async () => {
      const rows = await edge.tunnels().catch(() => []);
      return rows.filter(({ policy }) => policy?.revision === revision).length === members.length;
    };
    await until(`every member is back under revision ${revision}`, areBack, { timeoutMs: BACK_WITHIN_MS });
    visitors.answered = revision;
    await moreServed(visitors);
  }
  await visitors.stop();
  const gone = members.filter(({ isAlive }) => !isAlive).length;
  check(
    visitors.wrong.length === 0 && gone === 0 && service.naked === 0,
    [
      `${name}: ${rolls} rolls, ${visitors.served} served, ${visitors.turnedAway} strangers turned away, ${visitors.unserved} found nobody`,
      `${gone} clients ended, ${service.naked} requests came without a policy`,
      ...visitors.words,
    ].join('; '),
  );
}

await runScript(
  {
    name: 'policy-roll',
    usage: USAGE,
    options: { revisions: 20, connections: 16, cuts: 5, kills: 3 },
    limitSecs: ({ revisions, cuts, kills }) => 120 + revisions * 40 + (cuts + kills) * 120,
  },
  async ({ values: { revisions, connections, cuts, kills }, say, check }) => {
    const edge = await new LastingEdge().start();
    const service = await startService();
    const { port } = service;
    const members = await startGroup(edge, { group: 'roll', port });
    const solo = await new Publisher(edge, entryOf(null, port)).start(0);
    say(`${MEMBERS} members of one group, and a tunnel alone; ${connections} connections of wrk`);
    let served = await roll('in a group', { revisions, edge, connections, publishers: members, check });
    served += await roll('alone', { revisions, edge, connections, publishers: [solo], check });
    await Promise.all([...members, solo].map((publisher) => publisher.close()));

    const controlPort = Number(edge.run.control.split(':').at(-1));
    const relays = await Promise.all(Array.from({ length: MEMBERS }, () => startCutRelay(controlPort)));
    const servers = relays.map((relay) => `127.0.0.1:${relay.port}`);
    const torn = await startGroup(edge, { group: 'torn', port, servers });
    const common = { edge, members: torn, service, check };
    await interruptedRolls('sessions cut in the middle of a roll', {
      ...{ ...common, rolls: cuts, first: 1, isKnown: true },
      interrupt: async () => {
        for (const relay of relays) relay.cutAll();
      },
    });
    await interruptedRolls('the edge killed in the middle of a roll', {
      ...{ ...common, rolls: kills, first: cuts + 1, isKnown: false },
      interrupt: async () => {
        await edge.kill();
        await edge.start();
      },
    });
    await Promise.all(torn.map((publisher) => publisher.close()));
    for (const relay of relays) relay.close();
    await edge.close();
    return `${served} requests while ${revisions} revisions came, in a group and alone: none failed, none met an older policy; ${cuts} rolls were cut and ${kills} lost their edge: every member was back, nobody was served without a policy`;
  },
);
