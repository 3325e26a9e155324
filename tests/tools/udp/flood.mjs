// Sends a flood from 100,000 source addresses beside 50 active visitors, in a separate network namespace where every address in
// 10.64.0.0/10 belongs to the machine. Measures the visitors' losses, the edge's memory growth, and the maximum bytes sent to a forged
// address.
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startChild, stopChild } from '../../../bench/lib/children.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { inOwnNetwork } from './lib/own-network.mjs';
import { dropsOf, needs, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/flood.mjs [--seconds N] [--addresses N] [--per-second N] [--carrier]
As root: datagrams of that many addresses in turn for 60 s beside 50 confirmed flows; --carrier: without the UDP path.`;
const PROGRAM = fileURLToPath(new URL('lib/flood-program.mjs', import.meta.url));
const VISITORS = 50;
const LOST_SHARE_MAX = 0.01;
const GROWS_BYTES_MAX = 40e6;
/** Maximum memory growth of the client, which needs a socket for each of the tunnel's maximum number of flows. */
const CLIENT_GROWS_BYTES_MAX = 10_000 * 16e3;
/** Maximum bytes for a forged address: [udp] unconfirmed_reply_bytes. */
const VICTIM_BYTES_MAX = 8192;

/** Starts a visitor that sends a word every 50 ms to an echo service. */
async function startVisitor(port, n) {
  const socket = createSocket('udp4').bind(0, `127.0.2.${n + 1}`);
  await once(socket, 'listening');
  const visitor = { sent: 0, heard: 0, stop: () => clearInterval(visitor.timer), timer: null };
  socket.on('message', () => {
    visitor.heard += 1;
  });
  const word = () => {
    visitor.sent += 1;
    socket.send(`word of ${n}`, port, '127.0.0.1');
  };
  word();
  await until('an answer', () => visitor.heard > 0);
  visitor.timer = setInterval(word, 50);
  return visitor;
}

/** Sends a single short request that gets a much larger answer, like a forged address in an amplification attack. */
async function askAsVictim(port) {
  const socket = createSocket('udp4').bind(0, '10.64.0.1');
  await once(socket, 'listening');
  const victim = { bytes: 0, datagrams: 0 };
  socket.on('message', (bytes) => {
    victim.bytes += bytes.length;
    victim.datagrams += 1;
  });
  socket.send('much', port, '127.0.0.1');
  await pause(2000);
  socket.close();
  return victim;
}

needs(['ip', '-V'], ['unshare', '--version']);
inOwnNetwork();
// If other programs take the processor, the kernel drops the datagrams of all flows alike, because no program reads them in time. Then the
// run says nothing about the edge's rules.
setPriority(-10);
await runScript(
  {
    name: 'flood',
    usage: USAGE,
    options: { seconds: 60, addresses: 100_000, 'per-second': 5000, carrier: false },
    limitSecs: ({ seconds }) => seconds + 120,
  },
  async ({ values: { seconds, addresses, 'per-second': perSecond, carrier }, say, check }) => {
    spawnSync('ip', ['route', 'add', 'local', '10.64.0.0/10', 'dev', 'lo']);
    // The edge uses the product's limits instead of the high limits of other scripts.
    const edge = await startUdpEdge({ limits: '', udp: carrier ? 'path = "carrier"' : '' });
    const service = createSocket('udp4').bind(0, '127.0.0.1');
    await once(service, 'listening');
    service.on('message', (bytes, { port, address }) => {
      const answers = bytes.toString() === 'much' ? Array.from({ length: 100 }, () => Buffer.alloc(1000)) : [bytes];
      for (const answer of answers) service.send(answer, port, address);
    });
    const tunnel = await new UdpTunnel(edge, service.address().port).start();
    await tunnel.settle(carrier ? 'carrier' : 'udp');
    const visitors = await Promise.all(Array.from({ length: VISITORS }, (_, n) => startVisitor(tunnel.port, n)));
    const victim = await askAsVictim(tunnel.port);
    check(
      victim.bytes <= VICTIM_BYTES_MAX,
      `one question of 4 bytes, 100 answers of 1,000: the asker got ${victim.bytes} bytes`,
    );
    await pause(3000);
    const begunFrom = visitors.map(({ sent, heard }) => ({ sent, heard }));
    const before = await Promise.all([edge.memory(), tunnel.memory()]);
    const cpuBefore = await edge.cpu();
    let report = null;
    const flood = startChild({
      name: 'flood',
      command: process.execPath,
      args: [PROGRAM, String(tunnel.port), String(addresses), String(perSecond), String(seconds)],
      onLine: (line) => {
        report = JSON.parse(line);
      },
    });
    await until('the flood is over', () => report, { timeoutMs: (seconds + 30) * 1000 });
    await stopChild(flood);
    await pause(1000);
    const cpu = ((await edge.cpu()).totalMs - cpuBefore.totalMs) / (seconds * 1000);
    const after = await Promise.all([edge.memory(), tunnel.memory()]);
    for (const { stop } of visitors) stop();
    await pause(500);
    const sum = (name) => visitors.reduce((all, visitor, n) => all + visitor[name] - begunFrom[n][name], 0);
    const { total, dropped, flows } = await tunnel.flows();
    const ofVisitors = flows.filter(({ visitor }) => visitor.startsWith('127.0.2.'));
    const droppedOf = ofVisitors.reduce((all, flow) => all + flow.dropped, 0);
    say(
      `the flood: ${report.sent} datagrams of ${report.addresses} addresses, ${report.heard} answered, most to one ${report.most} bytes`,
    );
    say(`flows now ${total}, dropped: ${dropsOf(dropped)}, edge at ${(100 * cpu).toFixed(0)} % of a core`);
    const lost = Math.max(0, sum('sent') - sum('heard'));
    check(
      lost / sum('sent') < LOST_SHARE_MAX,
      `${VISITORS} confirmed flows lost ${lost} of ${sum('sent')}, ${droppedOf} of them dropped by the edge`,
    );
    for (const [n, name] of ['edge', 'client'].entries()) {
      const grown = after[n].rss - before[n].rss;
      check(
        grown < (name === 'edge' ? GROWS_BYTES_MAX : CLIENT_GROWS_BYTES_MAX),
        `the ${name} grew by ${(grown / 1e6).toFixed(1)} MB (held ${((after[n].heldBytes - before[n].heldBytes) / 1e6).toFixed(1)} MB)`,
      );
    }
    check(report.most <= VICTIM_BYTES_MAX, `no forged address got more than ${report.most} bytes`);
    return `${seconds} s of ${perSecond} datagrams a second`;
  },
);
