// An account floods the edge with frames beside a normal tenant. Measures the effect on the tenant's visitors, the edge's processor time,
// and the number of log lines and alerts.
// BASELINE=../before tests a different built checkout.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild, stopChild } from '../../../bench/lib/children.mjs';
import { startEdge } from '../lib/edge.mjs';
import { runScript } from '../lib/script.mjs';
import { Member } from './lib/member.mjs';
import { startReceiver } from './lib/receiver.mjs';

const USAGE = `usage: node tests/tools/groups/flood.mjs [--seconds N]
Visits without and then under a flood of frames of another account, 60 s each (--seconds).`;

const PROGRAM = fileURLToPath(new URL('lib/flooder-program.mjs', import.meta.url));
const KEY = 'key-of-the-flooder';
const LINES_PER_MINUTE = 60;
const ALERTS_PER_MINUTE = 30;
/** Maximum share of a core that the flood may cost the edge in addition to the visits. */
const CPU_SHARE_MAX = 0.25;

/** Counts new lines of the edge's log by their text. */
function countLines(edge) {
  const counts = new Map();
  let rest = '';
  const read = (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('{')) continue;
      const { msg } = JSON.parse(line);
      counts.set(msg, (counts.get(msg) ?? 0) + 1);
    }
  };
  edge.child.process.stdout.on('data', read);
  edge.child.process.stderr.on('data', read);
  return counts;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function visit(edge, host) {
  return new Promise((done, failed) => {
    const begun = performance.now();
    const asked = request({ port: edge.httpPort, host: '127.0.0.1', headers: { host }, agent }, (answer) => {
      answer.resume().on('end', () => done(performance.now() - begun));
    });
    asked.on('error', failed).end();
  });
}

/** Makes visits one after the other with pauses of 20 ms. Returns quantiles of their duration, and the edge's share of a core. */
async function visits(edge, host, seconds) {
  const times = [];
  const before = await edge.cpu();
  const begun = performance.now();
  while (performance.now() - begun < seconds * 1000) {
    times.push(await visit(edge, host));
    await pause(20);
  }
  const cpu = ((await edge.cpu()).totalMs - before.totalMs) / (performance.now() - begun);
  times.sort((a, b) => a - b);
  const quantile = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  return { p50: quantile(0.5), p99: quantile(0.99), cpu, count: times.length };
}

const words = ({ p50, p99, cpu, count }) =>
  `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${count} visits, edge at ${(cpu * 100).toFixed(0)} % of a core`;

async function startFlood(edge, url) {
  const args = [PROGRAM, String(edge.controlPort), KEY, url];
  const child = startChild({ name: 'flooder', command: process.execPath, args, ipc: true });
  await Promise.race([once(child.process, 'message'), failAtExit(child)]);
  return child;
}

await runScript(
  { name: 'flood', usage: USAGE, options: { seconds: 60 }, limitSecs: ({ seconds }) => 4 * seconds + 120 },
  async ({ values: { seconds }, say, check }) => {
    const baseline = process.env.BASELINE;
    const server = baseline && join(resolve(baseline), 'apps/server/bin/tunnel-server.mjs');
    const sha256 = createHash('sha256').update(KEY).digest('hex');
    const tables = `[[auth.keys]]\naccount = "flooder"\nsha256 = "${sha256}"`;
    const receiver = await startReceiver('good', '127.0.0.9');
    const edge = await startEdge({ tables, server });
    const service = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const honest = await new Member(edge, {
      protocol: 'http',
      localPort: service.address().port,
      group: 'honest',
    }).start();
    await visits(edge, honest.host, 2);
    const calm = await visits(edge, honest.host, seconds);
    say(`without the flood: ${words(calm)}`);
    const lines = countLines(edge);
    const flooder = await startFlood(edge, receiver.url);
    const flooded = await visits(edge, honest.host, seconds);
    say(`under the flood:   ${words(flooded)}`);
    const alerts = receiver.alerts.length;
    const counted = new Map(lines);
    const answer = once(flooder.process, 'message');
    flooder.process.send('sent');
    say(`sent: ${JSON.stringify((await answer)[0].sent)}`);
    await stopChild(flooder, 'SIGKILL');
    for (const [text, count] of counted) say(`${count} lines: ${text}`);
    const minutes = Math.max(1, seconds / 60);
    const most = Math.max(0, ...counted.values());
    check(most <= LINES_PER_MINUTE * minutes, `at most ${most} lines of one text in ${seconds} s`);
    check(alerts > 0 && alerts <= ALERTS_PER_MINUTE * (minutes + 1), `${alerts} alerts left in ${seconds} s`);
    const share = flooded.cpu - calm.cpu;
    check(share < CPU_SHARE_MAX, `the flood takes ${(share * 100).toFixed(0)} % of a core`);
    return `p99 ${calm.p99.toFixed(1)} ms without the flood, ${flooded.p99.toFixed(1)} ms under it`;
  },
);
