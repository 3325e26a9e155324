// Runs dig through a udp tunnel to dnsmasq: every query is a separate flow with its own answer, and no flow sees the answers of a
// different flow.
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { dropsOf, freeUdpPort, needs, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/dns.mjs [--queries N] [--at-a-time N]
Queries of dig, each from a port of its own, at dnsmasq behind a tunnel; on the UDP path and on carriers.`;
const NAMES = 500;

/** Returns the address of a name. Each name has a different address, so that wrong answers are detected. */
const addressOf = (n) => `10.9.${Math.floor(n / 200)}.${(n % 200) + 1}`;

async function startDnsmasq() {
  const folder = throwAwayFolder();
  const port = await freeUdpPort();
  const hosts = Array.from({ length: NAMES }, (_, n) => `${addressOf(n)} n${n}.test`);
  writeFileSync(join(folder, 'hosts'), `${hosts.join('\n')}\n`);
  // A record with almost 4 KB, in addition to the small answers.
  const text = Array.from({ length: 14 }, (_, n) => `--txt-record=big.test,${String(n).padStart(250, 'x')}`);
  const args = [
    ...['--keep-in-foreground', '--no-resolv', '--no-hosts', '--conf-file=/dev/null', '--pid-file'],
    ...[`--addn-hosts=${join(folder, 'hosts')}`, `--port=${port}`, '--listen-address=127.0.0.1', '--bind-interfaces'],
    ...['--edns-packet-max=4096', '--user=root', ...text],
  ];
  startChild({ name: 'dnsmasq', command: 'dnsmasq', args });
  return port;
}

/**
 * Runs dig with a file of queries, which it sends one after the other from separate sockets. Each dig uses a different source address:
 * the processes share ports (SO_REUSEPORT), and with the same address the kernel would deliver answers to the wrong process.
 */
async function dig(folder, port, { from, count, source }) {
  const file = join(folder, `queries-${from}`);
  const asked = Array.from({ length: count }, (_, n) => (from + n) % NAMES);
  writeFileSync(file, asked.map((n) => `n${n}.test A`).join('\n'));
  const args = [
    '@127.0.0.1',
    '-b',
    source,
    '-p',
    String(port),
    '+bufsize=4096',
    '+tries=1',
    '+time=5',
    '+noall',
    '+answer',
    '-f',
    file,
  ];
  const child = spawn('dig', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let right = 0;
  let wrong = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^n(\d+)\.test\.\s+\d+\s+IN\s+A\s+(\S+)/.exec(line);
    if (found === null) continue;
    if (found[2] === addressOf(Number(found[1]))) right += 1;
    else wrong += 1;
  }
  return { right, wrong, lost: count - right - wrong };
}

/** Lets visitors request different names with the same DNS id at the same time. */
async function sameId(port, rounds) {
  const query = (name) => {
    const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
    const head = Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
  };
  let own = 0;
  let foreign = 0;
  const visitors = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      await once(socket, 'listening');
      const address = Buffer.from(addressOf(n).split('.').map(Number));
      socket.on('message', (bytes) => {
        if (bytes.subarray(-4).equals(address)) own += 1;
        else foreign += 1;
      });
      return { socket, query: query(`n${n}.test`) };
    }),
  );
  for (let round = 0; round < rounds; round += 1) {
    for (const visitor of visitors) visitor.socket.send(visitor.query, port, '127.0.0.1');
    await until('answers', () => own + foreign >= (round + 1) * visitors.length).catch(() => {});
  }
  for (const { socket } of visitors) socket.close();
  return { own, foreign, asked: rounds * visitors.length };
}

needs(['dig', '-v'], ['dnsmasq', '--version']);
await runScript(
  { name: 'dns', usage: USAGE, options: { queries: 10_000, 'at-a-time': 4 }, limitSecs: () => 600 },
  async ({ values: { queries, 'at-a-time': atATime }, say, check }) => {
    const local = await startDnsmasq();
    const folder = throwAwayFolder();
    for (const path of ['auto', 'carrier']) {
      const edge = await startUdpEdge({ udp: `new_flows_per_second = 0\npath = "${path}"` });
      const tunnel = await new UdpTunnel(edge, local).start();
      await tunnel.settle(path === 'auto' ? 'udp' : 'carrier');
      const begun = performance.now();
      const count = Math.ceil(queries / atATime);
      const runs = Array.from({ length: atATime }, (_, n) =>
        dig(folder, tunnel.port, { from: n * count, count, source: `127.0.1.${n + 1}` }),
      );
      const seen = (await Promise.all(runs)).reduce((sum, run) => ({
        right: sum.right + run.right,
        wrong: sum.wrong + run.wrong,
        lost: sum.lost + run.lost,
      }));
      const seconds = (performance.now() - begun) / 1000;
      const { dropped, total } = await tunnel.flows();
      say(`${path}: ${queries} queries in ${seconds.toFixed(1)} s, ${total} flows now, dropped: ${dropsOf(dropped)}`);
      check(seen.lost === 0, `${path}: ${seen.lost} of ${count * atATime} queries lost`);
      check(seen.wrong === 0, `${path}: ${seen.wrong} wrong answers`);
      const { own, foreign, asked } = await sameId(tunnel.port, 100);
      check(
        foreign === 0,
        `${path}: ${own} of ${asked} answers to 20 visitors with the same id, ${foreign} of them another's`,
      );
      await tunnel.close();
      await edge.close();
    }
    return `${queries} queries each on the UDP path and on carriers`;
  },
);
