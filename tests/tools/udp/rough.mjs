// Tests udp tunnels under rough conditions: arbitrary bytes at the ports of the UDP path, datagrams of every size, a service that stops
// and returns, carriers that are cut, a client that is killed, 10,000 flows, and the end of the edge with active flows.
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { SlowLink } from './lib/slow-link.mjs';
import { dropsOf, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/rough.mjs [--flows N] [--packets N]
On loopback.`;
const HOST = '127.0.0.1';
const EDGE_BYTES_PER_FLOW_MAX = 3000;
const CLIENT_BYTES_PER_FLOW_MAX = 16_000;

async function bind(port = 0, host = HOST) {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_000_000 }).bind(port, host);
  await once(socket, 'listening');
  return socket;
}

async function startEcho(port = 0) {
  const socket = await bind(port);
  socket.on('message', (bytes, from) => socket.send(bytes, from.port, from.address));
  return socket;
}

class Visitor {
  heard = [];
  #socket;
  #port;

  static async of(port, host = HOST) {
    const visitor = new Visitor();
    visitor.#socket = await bind(0, host);
    visitor.#port = port;
    visitor.#socket.on('message', (bytes) => visitor.heard.push(bytes));
    return visitor;
  }

  say(bytes) {
    this.#socket.send(bytes, this.#port, HOST);
  }

  /** Sends the bytes every 100 ms until the same bytes come back. Returns false after the time limit. */
  async echo(bytes, timeoutMs = 5000) {
    const giveUpAt = performance.now() + timeoutMs;
    while (performance.now() < giveUpAt) {
      this.say(bytes);
      await pause(100);
      if (this.heard.some((heard) => heard.equals(bytes))) return true;
    }
    return false;
  }

  close() {
    this.#socket.close();
  }
}

async function tryAnyBytes({ edge, packets, check }) {
  const sender = await bind();
  let answers = 0;
  sender.on('message', () => {
    answers += 1;
  });
  const before = await edge.memory();
  for (let n = 0; n < packets; n += 1) {
    const bytes = randomBytes(n % 50 === 0 ? randomInt(0, 60_000) : randomInt(0, 120));
    // Half of the datagrams begin like valid packets.
    if (n % 2 === 0 && bytes.length > 0) bytes[0] = randomInt(1, 6);
    sender.send(bytes, edge.run.udp_ports[n % 2], HOST);
    if (n % 50 === 0) await pause(1);
  }
  await pause(1000);
  const grown = (await edge.memory()).heldBytes - before.heldBytes;
  check(answers === 0, `${packets} packets of any bytes at the path's ports: ${answers} answers`);
  check(grown < 2e6, `the edge holds ${(grown / 1e6).toFixed(2)} MB more than before`);
  sender.close();
}

async function trySizes({ tunnel, path, check }) {
  const visitor = await Visitor.of(tunnel.port);
  const sizes = [0, 1, 1371, 1372, 1373, 1500, 9000, 40_000, 65_507];
  const wrong = [];
  for (const size of sizes) if (!(await visitor.echo(randomBytes(size)))) wrong.push(size);
  check(
    wrong.length === 0,
    `${path}: datagrams of ${sizes.join(', ')} bytes${wrong.length > 0 ? `; not ${wrong}` : ''}`,
  );
  visitor.close();
}

async function tryRestart({ tunnel, service, check }) {
  const visitor = await Visitor.of(tunnel.port);
  await visitor.echo(Buffer.from('before'));
  const { port } = service.address();
  service.close();
  for (let n = 0; n < 20; n += 1) {
    visitor.say('nobody there');
    await pause(20);
  }
  const again = await startEcho(port);
  check(await visitor.echo(Buffer.from('after')), 'a service that comes back is there for the same flow');
  const next = await Visitor.of(tunnel.port);
  check(await next.echo(Buffer.from('next')), 'and for the next one');
  visitor.close();
  next.close();
  return again;
}

async function tryFlows({ edge, tunnel, flows, say, check }) {
  const warm = await Visitor.of(tunnel.port);
  await warm.echo(Buffer.from('warm'));
  await pause(2000);
  const idleBefore = await cpuOver(edge, tunnel, 5000);
  const before = await Promise.all([edge.memory(), tunnel.memory()]);
  const { total: had } = await tunnel.flows();
  const visitors = [];
  for (let n = 0; n < flows; n += 1) {
    const visitor = await Visitor.of(tunnel.port);
    visitors.push(visitor);
    visitor.say('one');
    if (n % 10 === 0) await pause(5);
  }
  // Each visitor sends twice more, so that its flow is confirmed and stays.
  for (let round = 0; round < 3; round += 1) {
    await pause(1000);
    for (const [n, visitor] of visitors.entries()) {
      if (round > 1 && visitor.heard.length > 1) continue;
      visitor.say('again');
      if (n % 20 === 0) await pause(4);
    }
  }
  await pause(1000);
  const answered = visitors.filter(({ heard }) => heard.length > 0).length;
  const { total, dropped } = await tunnel.flows();
  const after = await Promise.all([edge.memory(), tunnel.memory()]);
  say(`${total} flows, ${answered} of ${flows} visitors answered, dropped: ${dropsOf(dropped)}`);
  const each = (n, key) => (after[n][key] - before[n][key]) / (total - had);
  check(answered > 0.99 * flows, `${answered} of ${flows} flows live`);
  check(
    each(0, 'heldBytes') < EDGE_BYTES_PER_FLOW_MAX,
    `edge: ${each(0, 'heldBytes').toFixed(0)} bytes a flow held, ${each(0, 'rss').toFixed(0)} of the process`,
  );
  check(
    each(1, 'rss') < CLIENT_BYTES_PER_FLOW_MAX,
    `client: ${each(1, 'heldBytes').toFixed(0)} bytes a flow held, ${each(1, 'rss').toFixed(0)} of the process`,
  );
  const idle = await cpuOver(edge, tunnel, 5000);
  say(
    `idle for 5 s: edge ${idleBefore[0].toFixed(0)} ms of CPU without, ${idle[0].toFixed(0)} ms with the flows; client ${idleBefore[1].toFixed(0)}, ${idle[1].toFixed(0)} ms`,
  );
  for (const visitor of [...visitors, warm]) visitor.close();
}

async function cpuOver(edge, tunnel, ms) {
  const read = async () => (await Promise.all([edge.cpu(), tunnel.cpu()])).map(({ totalMs }) => totalMs);
  const before = await read();
  await pause(ms);
  const after = await read();
  return after.map((now, n) => now - before[n]);
}

async function tryCuts({ edge, service, check }) {
  const link = await SlowLink.start(edge.controlPort, { bytesPerSecond: 50_000_000, delayMs: 1 });
  const tunnel = await new UdpTunnel(edge, service.address().port, { control: `${HOST}:${link.port}` }).start();
  const visitor = await Visitor.of(tunnel.port);
  const tookMs = [];
  // The client's reconnect delays grow while it is cut off repeatedly.
  for (let n = 0; n < 3; n += 1) {
    link.cut();
    const begun = performance.now();
    const isBack = await visitor.echo(Buffer.from(`after cut ${n}`), 10_000);
    tookMs.push(isBack ? Math.round(performance.now() - begun) : Number.POSITIVE_INFINITY);
  }
  check(Math.max(...tookMs) < 10_000, `all connections of the client cut 3 times: the flow goes on after ${tookMs} ms`);
  const { port } = tunnel;
  await tunnel.kill();
  visitor.say('to nobody');
  await tunnel.start();
  check(tunnel.port === port, `a client that was killed gets port ${port} again`);
  check(await visitor.echo(Buffer.from('after the kill')), 'and the visitor goes on');
  visitor.close();
  await tunnel.close();
  link.close();
}

async function tryDrain({ edge, tunnel, check }) {
  const visitor = await Visitor.of(tunnel.port);
  await visitor.echo(Buffer.from('one'));
  await visitor.echo(Buffer.from('two'));
  edge.child.process.kill('SIGTERM');
  await pause(200);
  visitor.heard.length = 0;
  visitor.say('while it ends');
  // The late visitor uses a different address, because a reused port of an earlier visitor would belong to an existing flow.
  const late = await Visitor.of(tunnel.port, '127.0.0.2');
  late.say('too late');
  await pause(300);
  check(
    visitor.heard.some((heard) => heard.toString() === 'while it ends'),
    'SIGTERM: a flow that lives is still served',
  );
  check(late.heard.length === 0, 'SIGTERM: no new flow begins');
  await until('the edge has ended', () => edge.child.exit, { timeoutMs: 10_000 });
  check(edge.child.exit === 'exit code 0', `the edge ends in order (${edge.child.exit})`);
}

await runScript(
  { name: 'rough', usage: USAGE, options: { flows: 9900, packets: 50_000 }, limitSecs: () => 300 },
  async ({ values: { flows, packets }, say, check }) => {
    for (const path of ['auto', 'carrier']) {
      const edge = await startUdpEdge({ udp: `new_flows_per_second = 0\npath = "${path}"`, ports: 2 });
      let service = await startEcho();
      const tunnel = await new UdpTunnel(edge, service.address().port).start();
      await tunnel.settle(path === 'auto' ? 'udp' : 'carrier');
      await trySizes({ tunnel, path, check });
      if (path === 'auto') {
        await tryAnyBytes({ edge, packets, check });
        await tryFlows({ edge, tunnel, flows, say, check });
      }
      service = await tryRestart({ tunnel, service, check });
      await tryCuts({ edge, service, check });
      await tryDrain({ edge, tunnel, check });
      await tunnel.close();
      service.close();
    }
    return 'any bytes, sizes, restarts, cuts, kills, flows, the end';
  },
);
