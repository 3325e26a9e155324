// Runs iperf3 -u through a udp tunnel, with a tcp tunnel on the same port number for its control connection. Then sends many times more
// datagrams than the path can carry: the excess is dropped and counted, delivered datagrams are not late, and nothing is kept.

import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { cleanEnvironment } from '../../../bench/lib/server.mjs';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { startEdge } from '../lib/edge.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { SlowLink } from './lib/slow-link.mjs';
import { dropsOf, freeUdpPort, needs, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/iperf.mjs [--seconds N] [--mbits N]
iperf3 -u at 20 Mbit/s for 30 s, both ways, on the UDP path and on carriers; then five times of what a slow link bears.`;
const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const LOST_SHARE_MAX = 0.001;
/** Bandwidth of the slow link. */
const BEARS_BYTES_PER_SECOND = 1_000_000;
const DELAY_MS = 20;
const LATE_MS = 150;
/** Time until the link's bandwidth is known. Until then, the first window is in flight. */
const LEARNING_MS = 1000;
const GROWS_BYTES_MAX = 30e6;

async function startTcpTunnel(edge, localPort, remotePort) {
  let opened;
  const ready = new Promise((resolve) => {
    opened = resolve;
  });
  const home = throwAwayFolder();
  const child = startChild({
    name: 'tunnel tcp',
    command: process.execPath,
    args: [
      ...[CLI, 'tcp', String(localPort), '--json', '--remote-port', String(remotePort)],
      ...['--server', edge.run.control, '--token-file', edge.run.admin_token_file],
    ],
    env: cleanEnvironment(home),
    cwd: home,
    onLine: (line) => line.includes('"event":"ready"') && opened(),
  });
  await Promise.race([ready, failAtExit(child)]);
}

/**
 * Returns the buffer size for iperf3's sockets. The default of 44 ms at 20 Mbit/s is too small for a program on a shared machine:
 * datagrams that it does not read in time would count as lost by the tunnel. iperf3 refuses to start if it gets less than requested.
 */
function bufferBytes() {
  const limitOf = (name) => Number(readFileSync(`/proc/sys/net/core/${name}`, 'utf8'));
  return Math.min(2 ** 22, limitOf('rmem_max'), limitOf('wmem_max'));
}

/**
 * Returns the number of datagrams that kernels dropped because no program read them in time, over all sockets of this network namespace.
 */
function unread() {
  const [names, values] = readFileSync('/proc/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Udp: '))
    .map((line) => line.split(' '));
  return Number(values[names.indexOf('RcvbufErrors')]);
}

/** Runs iperf3 and returns the receiver's counts. */
function iperf(port, { mbits, seconds, isReverse }) {
  const args = [
    ...['-u', '-c', '127.0.0.1', '-p', String(port), '-b', `${mbits}M`, '-t', String(seconds)],
    ...['-l', '1200', '-w', String(bufferBytes()), '-J'],
  ];
  const { stdout } = spawnSync('iperf3', [...args, ...(isReverse ? ['-R'] : [])], { encoding: 'utf8', maxBuffer: 1e8 });
  const { end, error } = JSON.parse(stdout);
  if (error !== undefined) throw new Error(`iperf3: ${error}`);
  const { packets, lost_packets: lost, jitter_ms: jitterMs } = end.sum;
  return { packets, lost, jitterMs };
}

async function tryIperf(path, { seconds, mbits }, { say, check }) {
  const port = await freePort();
  const edge = await startEdge({
    port,
    limits: `udp_port_range = [${port}, ${port}]`,
    // An iperf3 receiver sends a single word and listens, exactly like a forged address, so the limit for unconfirmed addresses is off.
    tables: `[udp]\nports = [0, 0]\nunconfirmed_reply_bytes = 0\npath = "${path}"`,
  });
  const local = await freeUdpPort();
  const server = startChild({
    name: 'iperf3',
    command: 'iperf3',
    args: ['-s', '-B', '127.0.0.1', '-p', String(local)],
  });
  await startTcpTunnel(edge, local, port);
  const tunnel = await new UdpTunnel(edge, local, { flags: ['--remote-port', String(port)] }).start();
  await tunnel.settle(path === 'auto' ? 'udp' : 'carrier');
  for (const isReverse of [false, true]) {
    const unreadBefore = unread();
    const { packets, lost, jitterMs } = iperf(port, { mbits, seconds, isReverse });
    const byKernel = unread() - unreadBefore;
    const { dropped } = await tunnel.flows();
    const way = `${path}, ${isReverse ? 'from' : 'to'} the service`;
    say(
      `${way}: ${packets} datagrams at ${mbits} Mbit/s, jitter ${jitterMs.toFixed(2)} ms, dropped so far: ${dropsOf(dropped)}; ${byKernel} by kernels`,
    );
    check(lost / packets < LOST_SHARE_MAX, `${way}: ${lost} lost, ${((100 * lost) / packets).toFixed(3)} %`);
  }
  await tunnel.close();
  await stopChild(server);
  await edge.close();
}

/** Sends datagrams with their time of sending to a service that records the age of each. */
async function tryTooMuch({ say, check }) {
  const edge = await startEdge({
    limits: `udp_port_range = [${await freeUdpPort()}, 65535]`,
    tables: '[udp]\npath = "carrier"',
  });
  const link = await SlowLink.start(edge.controlPort, { bytesPerSecond: BEARS_BYTES_PER_SECOND, delayMs: DELAY_MS });
  const service = createSocket('udp4').bind(0, '127.0.0.1');
  await once(service, 'listening');
  const ages = [];
  service.on('message', (bytes) => ages.push([bytes.readDoubleBE(0), performance.now() - bytes.readDoubleBE(0)]));
  const tunnel = await new UdpTunnel(edge, service.address().port, { control: `127.0.0.1:${link.port}` }).start();
  const visitor = createSocket('udp4').bind(0, '127.0.0.1');
  await once(visitor, 'listening');
  const datagram = Buffer.alloc(1000);
  const say5 = (count) => {
    for (let n = 0; n < count; n += 1) {
      datagram.writeDoubleBE(performance.now(), 0);
      visitor.send(Buffer.from(datagram), tunnel.port, '127.0.0.1');
    }
  };
  say5(1);
  await until('the first one', () => ages.length > 0);
  const before = await Promise.all([edge.memory(), tunnel.memory()]);
  const perMs = (5 * BEARS_BYTES_PER_SECOND) / 1000 / 1000;
  const begun = performance.now();
  let sent = 0;
  while (performance.now() - begun < 10_000) {
    const due = Math.floor((performance.now() - begun) * perMs) - sent;
    say5(due);
    sent += due;
    await pause(2);
  }
  const seconds = (performance.now() - begun) / 1000;
  await pause(500);
  const after = await Promise.all([edge.memory(), tunnel.memory()]);
  const { dropped } = await tunnel.flows();
  const arrived = ages.splice(0);
  const known = arrived
    .filter(([sentAt]) => sentAt > begun + LEARNING_MS)
    .map(([, ageMs]) => ageMs)
    .sort((a, b) => a - b);
  const at = (share) => known[Math.floor(share * (known.length - 1))];
  say(
    `five times too much: ${sent} sent, ${arrived.length} arrived (${((arrived.length * 1000) / seconds / 1e6).toFixed(2)} MB/s of 1), dropped: ${dropsOf(dropped)}`,
  );
  say(`their age: p50 ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms, max ${at(1).toFixed(0)} ms`);
  check(at(0.99) < 2 * DELAY_MS + LATE_MS, `p99 under the round trip + ${LATE_MS} ms`);
  check(at(1) < 2 * DELAY_MS + LATE_MS + 100, 'none much later than that');
  const counted = Object.values(dropped).reduce((sum, count) => sum + count, 0);
  check(
    Math.abs(sent + 1 - arrived.length - counted) <= 0.01 * sent,
    `${sent + 1 - arrived.length} did not arrive, ${counted} are counted`,
  );
  check(arrived.length * 1000 > 0.6 * BEARS_BYTES_PER_SECOND * seconds, 'most of what the link bears is used');
  for (const [n, name] of ['edge', 'client'].entries()) {
    const grown = after[n].rss - before[n].rss;
    check(grown < GROWS_BYTES_MAX, `the ${name} grew by ${(grown / 1e6).toFixed(1)} MB`);
  }
  link.close();
}

needs(['iperf3', '--version']);
await runScript(
  { name: 'iperf', usage: USAGE, options: { seconds: 30, mbits: 20 }, limitSecs: ({ seconds }) => 4 * seconds + 120 },
  async ({ values, ...tools }) => {
    for (const path of ['auto', 'carrier']) await tryIperf(path, values, tools);
    await tryTooMuch(tools);
    return `${values.mbits} Mbit/s for ${values.seconds} s both ways, on the UDP path and on carriers; five times too much`;
  },
);
