// Checks that dispatch is uniform: 3 members in 3 real clients, 30,000 public connections, and equal figures in all counters. A correct
// edge fails by chance about once in a thousand runs, because p is 0.001.
import { connect } from 'node:net';
import { startEdge } from '../lib/edge.mjs';
import { inParallel } from '../lib/in-parallel.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { Member } from './lib/member.mjs';
import { startNamingService } from './lib/naming-service.mjs';

const USAGE = `usage: node tests/tools/groups/spread.mjs [--http] [--connections N]
3 members, 30,000 connections of a tcp group; with --http of an http group, one request each. About a minute.`;

const MEMBERS = 3;
const AT_ONCE = 48;
/** Critical chi-square value with 2 degrees of freedom at p = 0.001. */
const CHI_SQUARE_MAX = 13.816;
const OFF_MAX = 0.03;
const GROUP = 'spread';
/** Number of source addresses. Each address has separate outgoing ports, so that ports of closed connections need not be reused early. */
const ADDRESSES = 200;

/** Opens a public connection and returns the text received until its end. */
function visit({ port, host, protocol }, index) {
  return new Promise((resolve, reject) => {
    const localAddress = `127.0.0.${2 + (index % ADDRESSES)}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (piece) => {
      text += piece;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    if (protocol === 'http') socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  });
}

const nameIn = (text, protocol) =>
  protocol === 'tcp' ? text : (/^HTTP\/1\.1 200 [\s\S]*?\r\n\r\n(.*)$/.exec(text)?.[1] ?? `no answer: ${text}`);

async function countVisits(place, connections, say) {
  const seen = new Map();
  let done = 0;
  await inParallel(connections, AT_ONCE, async (index) => {
    const name = nameIn(await visit(place, index), place.protocol);
    seen.set(name, (seen.get(name) ?? 0) + 1);
    done += 1;
    if (done % 5000 === 0) say(`${done} of ${connections} connections`);
  });
  return seen;
}

function checkSpread(counts, connections, check) {
  const expected = connections / MEMBERS;
  const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  const off = Math.max(...counts.map((count) => Math.abs(count - expected) / expected));
  const percent = `${(off * 100).toFixed(2)} %`;
  // With fewer connections the spread is larger, so only chi-square is checked.
  if (connections >= 30_000) check(off <= OFF_MAX, `each within 3 % of a third (the farthest is ${percent} off)`);
  check(chiSquare <= CHI_SQUARE_MAX, `chi-square ${chiSquare.toFixed(3)}, at most ${CHI_SQUARE_MAX} (p = 0.001)`);
  return `${counts.join(' + ')}, farthest ${percent} from a third, chi-square ${chiSquare.toFixed(3)}`;
}

async function checkCounters({ edge, members, services, seen, connections, check }) {
  const total = (group) => group.members.reduce((sum, { request_count }) => sum + request_count, 0);
  const group = await until('the edge has counted all', async () => {
    const found = await edge.group(GROUP);
    return total(found) === connections && found;
  });
  for (const [index, service] of services.entries()) {
    const { tunnelId } = members[index];
    const member = group.members.find(({ tunnel_id }) => tunnel_id === tunnelId);
    const counts = [seen.get(service.name) ?? 0, service.count, member?.request_count];
    check(new Set(counts).size === 1, `${service.name}: visitors, service, /api/groups count ${counts.join(', ')}`);
  }
  check(group.total_dispatches === connections, `total_dispatches ${group.total_dispatches}`);
  const series = [...(await edge.series('tunnel_group_dispatches_total')).values()];
  check(series.length === 1 && series[0] === connections, `tunnel_group_dispatches_total ${series.join(', ')}`);
}

await runScript(
  { name: 'spread', usage: USAGE, options: { http: false, connections: 30_000 }, limitSecs: () => 600 },
  async ({ values: { http, connections }, say, check }) => {
    const protocol = http ? 'http' : 'tcp';
    const edge = await startEdge();
    const names = Array.from({ length: MEMBERS }, (_, index) => `member-${index + 1}`);
    const services = await Promise.all(names.map((name) => startNamingService(protocol, name)));
    const flags = http ? ['--quiet', '--no-inspect'] : [];
    const members = await Promise.all(
      services.map(({ port }) => new Member(edge, { protocol, localPort: port, group: GROUP, flags }).start()),
    );
    await until('all are members', async () => (await edge.group(GROUP))?.healthy_count === MEMBERS);
    say(`${MEMBERS} clients in one ${protocol} group; ${connections} connections, ${AT_ONCE} at a time`);
    const [first] = members;
    const place = { protocol, port: http ? edge.httpPort : first.port, host: http ? first.host : '' };
    const seen = await countVisits(place, connections, say);
    const strange = [...seen.keys()].filter((name) => !names.includes(name));
    check(strange.length === 0, `every connection was served${strange.length > 0 ? `; not: ${strange[0]}` : ''}`);
    const summary = checkSpread(
      names.map((name) => seen.get(name) ?? 0),
      connections,
      check,
    );
    await checkCounters({ edge, members, services, seen, connections, check });
    await Promise.all(members.map((member) => member.close()));
    await edge.close();
    return `${protocol}: ${summary}`;
  },
);
