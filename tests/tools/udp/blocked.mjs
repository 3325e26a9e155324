// Blocks UDP between client and edge (nft drop) and opens it again, in a separate network namespace. Measures how long visitors hear
// nothing, and checks the reported reason.
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { inOwnNetwork } from './lib/own-network.mjs';
import { needs, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/blocked.mjs [--rounds N]
As root: UDP between client and edge is dropped in both directions, in one of them, in the other; and opened again each time.`;
const SILENT_MS_MAX = 5000;
const STABLE_MS = 11_000;

const nft = (rules) => {
  const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: rules, encoding: 'utf8' });
  if (status !== 0) throw new Error(`nft: ${stderr}`);
};

const block = (ports, directions) => {
  const set = `{ ${ports.join(', ')} }`;
  const lines = directions.map((direction) => `udp ${direction} ${set} drop`);
  nft(`table inet tries {\nchain in {\ntype filter hook input priority 0\n${lines.join('\n')}\n}\n}\n`);
};

/** Starts a visitor that sends a word every 10 ms to an echo service, and records the longest silence since the last reset. */
async function startVisitor(port) {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const visitor = { longestMs: 0, lastAt: performance.now(), heard: 0, sent: 0, stop: () => clearInterval(timer) };
  const look = () => {
    visitor.longestMs = Math.max(visitor.longestMs, performance.now() - visitor.lastAt);
  };
  socket.on('message', () => {
    look();
    visitor.lastAt = performance.now();
    visitor.heard += 1;
  });
  const timer = setInterval(() => {
    look();
    visitor.sent += 1;
    socket.send('word', port, '127.0.0.1');
  }, 10);
  visitor.since = () => Object.assign(visitor, { longestMs: 0, lastAt: performance.now(), heard: 0, sent: 0 });
  return visitor;
}

needs(['nft', '--version'], ['ip', '-V'], ['unshare', '--version']);
inOwnNetwork();
await runScript(
  { name: 'blocked', usage: USAGE, options: { rounds: 1 }, limitSecs: ({ rounds }) => 60 + 240 * rounds },
  async ({ values: { rounds }, say, check }) => {
    const edge = await startUdpEdge();
    const service = createSocket('udp4').bind(0, '127.0.0.1');
    await once(service, 'listening');
    service.on('message', (bytes, { port, address }) => service.send(bytes, port, address));
    const tunnel = await new UdpTunnel(edge, service.address().port).start();
    await tunnel.settle('udp');
    const visitor = await startVisitor(tunnel.port);
    const kinds = { 'both ways': ['dport', 'sport'], 'to the edge': ['dport'], 'to the client': ['sport'] };
    for (let round = 0; round < rounds; round += 1) {
      for (const [kind, directions] of Object.entries(kinds)) {
        await until('words pass', () => visitor.since().heard > 0 || pause(100).then(() => visitor.heard > 0));
        // The path stays open for a while, because a path that is lost at once is retried at longer intervals.
        await pause(STABLE_MS);
        visitor.since();
        block(edge.run.udp_ports, directions);
        const begun = performance.now();
        await tunnel.settle('carrier', 30_000);
        await pause(3000);
        const { path, reason } = await tunnel.flows();
        check(
          visitor.longestMs < SILENT_MS_MAX,
          `${kind}: visitors heard nothing for ${visitor.longestMs.toFixed(0)} ms, then everything`,
        );
        check(
          reason === 'went-silent',
          `${kind}: the edge says ${path}, ${reason}; the client ${JSON.stringify(tunnel.ways.at(-1)?.reason)}`,
        );
        nft('delete table inet tries');
        const opened = performance.now();
        visitor.since();
        await tunnel.settle('udp', 60_000);
        say(
          `${kind}: carriers ${((opened - begun) / 1000).toFixed(1)} s, back on UDP ${((performance.now() - opened) / 1000).toFixed(1)} s after it was opened`,
        );
        check(visitor.longestMs < 500, `${kind}: the return costs ${visitor.longestMs.toFixed(0)} ms`);
      }
    }
    visitor.stop();
    say(`events: ${tunnel.ways.map((way) => `${way.path} ${way.reason}`.trim()).join(' > ')}`);
    return `blocked ${3 * rounds} times and opened again`;
  },
);
