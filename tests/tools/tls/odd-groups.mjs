// First messages of TLS whose key agreement would cost an edge much more than the sender, a hundred in a second: visitors beside them hardly notice.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { runScript } from '../groups/lib/script.mjs';
import { needs } from '../proxy/lib/stand.mjs';
import { openTlsEdge, timeAt, visitOften } from './lib/tls-edge.mjs';

const USAGE = `usage: node tests/tools/tls/odd-groups.mjs [--hellos N] [--visitors N] [--rounds N]
100 hellos a second (--hellos) beside visitors, 200 a round (--visitors), in 5 rounds with and without them (--rounds).`;

/** What visitors may take beside the hellos, as a multiple of their time without them. */
const SLOWER_MAX = 1.5;
const GROUPS = ['ffdhe8192', 'ffdhe2048', 'P-521', 'X448'];

/** Recorded once, so that it costs the sender nothing to send it again. */
async function recordHello(group) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const sender = connectTls({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ecdhCurve: group,
    minVersion: 'TLSv1.3',
  });
  sender.on('error', () => {});
  const [receiver] = await once(server, 'connection');
  const [hello] = await once(receiver, 'data');
  receiver.destroy();
  sender.destroy();
  server.close();
  return hello;
}

/** Sends one after the other, each on a connection of its own, so many in a second. Returns the function that ends it. */
function sendOften(port, hellos, perSecond) {
  let n = 0;
  const timer = setInterval(() => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.once('data', () => socket.destroy());
    socket.write(hellos[n % hellos.length]);
    n += 1;
  }, 1000 / perSecond);
  return () => {
    clearInterval(timer);
    return n;
  };
}

needs(['openssl', 'version']);
const options = { hellos: 100, visitors: 200, rounds: 5 };
const script = { name: 'odd-groups', usage: USAGE, options, limitSecs: () => 180 };
await runScript(script, async ({ values: { hellos: perSecond, visitors, rounds }, say, check }) => {
  const { edge, port } = await openTlsEdge();
  const garbage = Buffer.from(Array.from({ length: 1200 }, (_, index) => (index * 151 + 22) % 256));
  const hellos = [...(await Promise.all(GROUPS.map(recordHello))), garbage];
  await visitOften(port, visitors);
  const quiet = [];
  const beside = [];
  let sent = 0;
  for (let round = 0; round < rounds; round += 1) {
    quiet.push(...(await visitOften(port, visitors)));
    const stop = sendOften(port, hellos, perSecond);
    beside.push(...(await visitOften(port, visitors)));
    sent += stop();
  }
  check(
    [...quiet, ...beside].every(({ status }) => status === 404),
    'all visitors are answered',
  );
  const [before, after] = [timeAt(quiet, 0.5), timeAt(beside, 0.5)];
  const result = `visitors' p50 ${before.toFixed(1)} ms without, ${after.toFixed(1)} ms beside ${perSecond} hellos a second`;
  say(`${sent} hellos sent; p99 ${timeAt(quiet, 0.99).toFixed(1)} and ${timeAt(beside, 0.99).toFixed(1)} ms`);
  check(after <= before * SLOWER_MAX, result);
  await edge.close();
  return result;
});
