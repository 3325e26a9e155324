// Connections to the https port whose first message does not come, or comes in drops: 10,000 of them at once. The edge gives up the oldest, honest visitors
// get through, memory stays bounded, and when their time is over nothing is left.
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { residentBytes } from '../../../bench/lib/process-table.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { needs } from '../proxy/lib/stand.mjs';
import { openTlsEdge, timeAt, visit, visitOften } from './lib/tls-edge.mjs';

const USAGE = `usage: node tests/tools/tls/hello-flood.mjs [--connections N] [--honest N]
10,000 connections that never get through (--connections), and 200 visitors that do, meanwhile (--honest).`;

/** What may be under way at once, and for how long: TLS_HANDSHAKES_MAX and TLS_HANDSHAKE_TIMEOUT_MS of the edge. */
const UNDER_WAY_MAX = 4096;
const TIMEOUT_MS = 10_000;
/** 16 KiB for each of those, and the connections themselves. */
const MEMORY_MAX_MB = 200;
/** Of each flood, one source after the other: the edge bounds what one address holds. */
const SOURCES = 8;

/** One record that announces a hello of 16,000 bytes; all of it but the end is there. */
const LONG_HELLO = Buffer.concat([
  Buffer.from([22, 3, 1, 0x3e, 0x84, 1, 0, 0x3e, 0x80, 3, 3]),
  Buffer.alloc(32 + 15_800, 7),
]);
/** Each is given its connection; a timer that it returns is stopped with it. */
const KINDS = {
  silent: () => {},
  begun: (socket) => socket.write(LONG_HELLO.subarray(0, 60)),
  'nearly whole': (socket) => socket.write(LONG_HELLO),
  slow: (socket) => {
    let at = 0;
    return setInterval(() => {
      at += 1;
      socket.write(LONG_HELLO.subarray(at - 1, at));
    }, 500);
  },
};

async function openEdge() {
  const { edge, port } = await openTlsEdge();
  const open = async () => (await edge.series('tunnel_connections_open')).get('share="visitors"');
  return { edge, port, open, residentMb: () => residentBytes(edge.child.pid).now / 1e6 };
}

/** All that will never get through, of each kind as many. */
class Flood {
  closed = 0;

  async begin(port, connections) {
    const kinds = Object.values(KINDS);
    for (let n = 0; n < connections; n += 1) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % SOURCES)}` });
      const timer = kinds[n % kinds.length](socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        clearInterval(timer);
        this.closed += 1;
      });
      if (n % 100 === 99) await pause(10);
    }
  }
}

function judgeHonest(answers, { say, check }) {
  const odd = answers.filter(({ status }) => status !== 404);
  if (odd.length > 0) say(`not answered: ${JSON.stringify(odd)}`);
  check(odd.length === 0, `all ${answers.length} honest visitors are answered`);
  const p99 = timeAt(answers, 0.99);
  say(`honest visitors: ${timeAt(answers, 0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
  check(p99 < 3000, 'none of them waits for the flood');
}

needs(['openssl', 'version']);
const options = { connections: 10_000, honest: 200 };
const script = { name: 'hello-flood', usage: USAGE, options, limitSecs: () => 180 };
await runScript(script, async ({ values: { connections, honest }, say, check }) => {
  const { edge, port, open, residentMb } = await openEdge();
  await visitOften(port, 20);
  const before = residentMb();
  let most = 0;
  let peakMb = before;
  const look = async () => {
    most = Math.max(most, await open());
    peakMb = Math.max(peakMb, residentMb());
  };
  const watch = setInterval(() => void look(), 200);
  const flood = new Flood();
  const [answers] = await Promise.all([visitOften(port, honest), flood.begin(port, connections)]);
  say(`${connections} begun, ${flood.closed} given up already, ${most} open at most, ${Math.round(peakMb)} MB`);
  judgeHonest(answers, { say, check });
  check(most <= UNDER_WAY_MAX + 200, `never more than ${UNDER_WAY_MAX} under way`);
  await until('all are given up', () => flood.closed === connections, { timeoutMs: TIMEOUT_MS + 20_000 });
  clearInterval(watch);
  await until('nothing is open', async () => (await open()) === 0);
  const grownMb = Math.round(peakMb - before);
  check(grownMb < MEMORY_MAX_MB, `memory grew by ${grownMb} MB at most`);
  const counted = await edge.series('tunnel_tls_connections_total');
  check(counted.get('kind="failed"') === connections, 'each is counted as failed, once');
  check((await visit(port)).status === 404, 'the edge answers as before');
  await edge.close();
  return `${connections} connections without a hello, ${answers.length} honest visitors beside them, ${grownMb} MB`;
});
