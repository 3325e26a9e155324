// Stalls a link for 2 s with `path = "carrier"`. Late datagrams are worse than lost ones, so only the first 200 ms of the stall may be
// delivered afterwards, and the tunnel must recover at once.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { SlowLink } from './lib/slow-link.mjs';
import { dropsOf, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/stall.mjs [--rounds N]
Datagrams every 5 ms, both ways, over a link that stands still for 2 s.`;
const STALL_MS = 2000;
const LATE_MS = 200;
const WELL_WITHIN_MS = 500;

/** Sends datagrams with their time of sending every 5 ms. */
class Talk {
  sent = 0;
  /** Received datagrams as [sent at, arrived at]. */
  heard = [];
  #timer;

  constructor(send) {
    this.#timer = setInterval(() => {
      const bytes = Buffer.alloc(200);
      bytes.writeDoubleBE(performance.now(), 0);
      this.sent += 1;
      send(bytes);
    }, 5);
  }

  take(bytes) {
    this.heard.push([bytes.readDoubleBE(0), performance.now()]);
  }

  stop() {
    clearInterval(this.#timer);
  }
}

async function stall(link, talks, { say, check }) {
  for (const talk of Object.values(talks)) talk.heard.length = 0;
  const begun = performance.now();
  link.isStalled = true;
  await pause(STALL_MS);
  link.isStalled = false;
  const over = performance.now();
  await pause(1500);
  for (const [way, { heard }] of Object.entries(talks)) {
    const late = heard.filter(([sentAt, at]) => sentAt > begun + LATE_MS && sentAt < over - 50 && at > over);
    const first = heard.find(([sentAt]) => sentAt >= over);
    const wellAfter = first === undefined ? Number.POSITIVE_INFINITY : first[1] - over;
    const kept = heard.filter(([sentAt, at]) => sentAt > begun && sentAt < over && at > over).length;
    say(
      `${way}: ${kept} of the stall came out of it; the first one sent after it came ${wellAfter.toFixed(0)} ms after its end`,
    );
    check(
      late.length === 0,
      `${way}: ${late.length} that were sent after the first ${LATE_MS} ms of the stall came late`,
    );
    check(wellAfter < WELL_WITHIN_MS, `${way}: well ${wellAfter.toFixed(0)} ms after the link`);
  }
}

await runScript(
  { name: 'stall', usage: USAGE, options: { rounds: 3 }, limitSecs: ({ rounds }) => 60 + 10 * rounds },
  async ({ values: { rounds }, ...tools }) => {
    const edge = await startUdpEdge({ udp: 'path = "carrier"' });
    const link = await SlowLink.start(edge.controlPort, { bytesPerSecond: 10_000_000, delayMs: 10 });
    const service = createSocket('udp4').bind(0, '127.0.0.1');
    await once(service, 'listening');
    const flags = [];
    const tunnel = await new UdpTunnel(edge, service.address().port, {
      control: `127.0.0.1:${link.port}`,
      flags,
    }).start();
    const visitor = createSocket('udp4').bind(0, '127.0.0.1');
    await once(visitor, 'listening');
    let back = null;
    const talks = {
      'to the service': new Talk((bytes) => visitor.send(bytes, tunnel.port, '127.0.0.1')),
      'from the service': new Talk((bytes) => back && service.send(bytes, back.port, back.address)),
    };
    service.on('message', (bytes, from) => {
      back = from;
      talks['to the service'].take(bytes);
    });
    visitor.on('message', (bytes) => talks['from the service'].take(bytes));
    await until('both ways', () => Object.values(talks).every(({ heard }) => heard.length > 200));
    for (let round = 0; round < rounds; round += 1) await stall(link, talks, tools);
    for (const talk of Object.values(talks)) talk.stop();
    const { dropped, path } = await tunnel.flows();
    tools.check(path === 'carrier', `on ${path}`);
    tools.say(`dropped: ${dropsOf(dropped)}`);
    tools.check(dropped.behind > 0, `${dropped.behind} are counted as behind`);
    link.close();
    return `${rounds} stalls of ${STALL_MS / 1000} s`;
  },
);
