// Floods while rules wait: bodies that are never sent whole, visitors that leave while their password is checked, visitors that read nothing, and a client that
// is killed in the midst of it. Others are served meanwhile, nothing of it reaches the service, and afterwards the edge holds what it held before.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { startEdge } from '../groups/lib/edge.mjs';
import { inParallel } from '../groups/lib/in-parallel.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { startTunnels } from './lib/policy-client.mjs';

const USAGE = `usage: node tests/tools/policy/deciding-flood.mjs [--bodies N] [--leavers N] [--deaf N]
1,000 bodies of which a part is sent (--bodies), 4,000 visitors that leave while they are decided (--leavers), 200 that read nothing (--deaf).`;

const CERT = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
const SECRET = 'what the sender signs with';
const SIGNATURE = `sha256=${createHmac('sha256', SECRET).update('another body').digest('hex')}`;
const PASSWORD = 'the password of me';
const BODY_BYTES = 1_000_000;
const SENT_BYTES = 60_000;
const HELD_MAX_BYTES = 64 * 1024 * 1024;
const GROWTH_MAX_MB = 12;
/** Beside those of before: the script's own questions. */
const DESCRIPTORS_SLACK = 6;
const AT_ONCE = 50;
const MB = 1e6;

const POLICY = [
  { match: { path: '/deny/**' }, deny: true },
  { match: { path: '/hook/**' }, verify_webhook: { provider: 'github', secret: SECRET } },
  { match: { path: '/slow/**' }, auth: { basic: { users: { me: PASSWORD } } } },
];

const headOf = (host, line, ...fields) => [`${line} HTTP/1.1`, `Host: ${host}`, ...fields, '', ''].join('\r\n');
const passwordOf = (password) => `Basic ${Buffer.from(`me:${password}`).toString('base64')}`;
/** Each visitor from an address of its own: ten wrong passwords of one are enough. */
const addressOf = (index) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

const dial = async (port) => {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
};

/** The status of one request on a connection of its own; 0: none came. */
const statusOf = (port, head) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(head));
    let text = '';
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
    });
    socket.setTimeout(30_000, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)));
  });

/** What the edge holds of visitors, by its own figures and by the system's. */
class Watch {
  #edge;
  #descriptors;
  #heldBytes;

  static async over(edge) {
    const watch = new Watch();
    watch.#edge = edge;
    watch.#descriptors = watch.#open();
    watch.#heldBytes = (await edge.memory()).heldBytes;
    return watch;
  }

  #open() {
    return readdirSync(`/proc/${this.#edge.child.pid}/fd`).length;
  }

  async gauge(name, labels = '') {
    return (await this.#edge.series(name)).get(labels);
  }

  async #isBack() {
    const held = await this.gauge('tunnel_policy_held_bytes');
    const visitors = await this.gauge('tunnel_connections_open', 'share="visitors"');
    return held === 0 && visitors === 0 && this.#open() <= this.#descriptors + DESCRIPTORS_SLACK;
  }

  /** As it was before. */
  async expectBack(check, after) {
    let isBack = true;
    await until('nothing is held', () => this.#isBack(), { timeoutMs: 40_000, everyMs: 200 }).catch(() => {
      isBack = false;
    });
    const held = await this.gauge('tunnel_policy_held_bytes');
    const visitors = await this.gauge('tunnel_connections_open', 'share="visitors"');
    check(
      isBack,
      `${after}: ${held} bytes held, ${visitors} visitors, ${this.#open() - this.#descriptors} descriptors more`,
    );
    const growth = ((await this.#edge.memory()).heldBytes - this.#heldBytes) / MB;
    check(growth < GROWTH_MAX_MB, `${after}: the edge holds ${growth.toFixed(1)} MB more than before`);
  }
}

/** Half of each body, and no more; they stay until the function that this gives is called. */
async function sendHalves(port, host, count) {
  const sockets = [];
  await inParallel(count, AT_ONCE, async () => {
    const socket = await dial(port);
    sockets.push(socket);
    const fields = [`X-Hub-Signature-256: ${SIGNATURE}`, `Content-Length: ${BODY_BYTES}`];
    socket.resume();
    socket.write(headOf(host, 'POST /hook', ...fields) + 'x'.repeat(SENT_BYTES));
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

async function leaveWhileDeciding(port, host, count) {
  await inParallel(count, AT_ONCE, async (index) => {
    const socket = await dial(port);
    const fields = [`X-Forwarded-For: ${addressOf(index)}`, `Authorization: ${passwordOf(`wrong ${index}`)}`];
    socket.write(headOf(host, 'GET /slow', ...fields));
    await pause(index % 7);
    if (index % 2 === 0) socket.destroy();
    else socket.resetAndDestroy();
  });
}

/** Of one connection after the other, as many as it may take back: passwords and bodies in turn. */
async function resetWhileDeciding(edge, host, count) {
  const perSession = 80;
  for (let from = 0; from < count; from += perSession) {
    const session = connectHttp2(`https://localhost:${new URL(edge.run.https_url).port}`, { ca: readFileSync(CERT) });
    session.on('error', () => {});
    for (let index = from; index < Math.min(count, from + perSession); index += 1) {
      const headers =
        index % 2 === 0
          ? {
              ':path': '/slow',
              authorization: passwordOf(`bad ${index}`),
              'x-forwarded-for': addressOf(index + 65_536),
            }
          : { ':path': '/hook', ':method': 'POST', 'x-hub-signature-256': SIGNATURE };
      const stream = session.request({ ':authority': host, ...headers }, { endStream: index % 2 === 0 });
      stream.on('error', () => {});
      if (index % 2 === 1) stream.write('half of it');
      setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), 20 + (index % 40));
    }
    await pause(100);
    session.destroy();
  }
}

/** Asks and asks, and reads nothing of what it is told. */
async function askWithoutReading(port, host, count) {
  const sockets = [];
  const asked = headOf(host, 'GET /deny').repeat(500);
  await inParallel(count, AT_ONCE, async () => {
    const socket = await dial(port);
    socket.pause();
    sockets.push(socket);
    socket.write(asked);
  });
  await pause(1000);
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

const startService = async () => {
  const reached = [];
  const server = createServer((request, response) => {
    reached.push(request.url);
    response.end('served');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { reached, port: server.address().port };
};

/** `edge`, `client`, `port` and `host` of the tunnel, `reached` of its service, and whether somebody is served there. */
async function startStand() {
  const service = await startService();
  const tables = `[tls]\ncert_path = "${CERT}"\nkey_path = "${KEY}"`;
  const edge = await startEdge({ serverLines: 'plain_http = "proxy"\ntrusted_proxies = ["127.0.0.1"]', tables });
  const tunnel = { name: 'guarded', port: service.port, policy: POLICY };
  const client = await startTunnels(edge, [tunnel], ['tls: true', `ca_file: ${CERT}`]);
  const [port, host] = [edge.httpPort, client.hostOf('guarded')];
  const isAnswered = async (line, ...fields) =>
    (await statusOf(port, headOf(host, line, ...fields, 'Connection: close'))) === 200;
  return {
    ...{ edge, client, port, host, reached: service.reached },
    isStrangerServed: () => isAnswered('GET /open'),
    isPersonServed: () => isAnswered('GET /slow/me', `Authorization: ${passwordOf(PASSWORD)}`),
  };
}

/** All code is warm, and what an edge keeps of requests anyway is there. */
async function warmUp({ port, host, isStrangerServed }) {
  (await sendHalves(port, host, 50))();
  await leaveWhileDeciding(port, host, 50);
  for (let count = 0; count < 300; count += 1) await isStrangerServed();
}

async function tryHalves({ port, host, isStrangerServed }, watch, count, check) {
  const leave = await sendHalves(port, host, count);
  const wanted = Math.min(count * SENT_BYTES, HELD_MAX_BYTES) * 0.9;
  const held = await until('bodies are held', async () => {
    const bytes = await watch.gauge('tunnel_policy_held_bytes');
    return bytes >= wanted ? bytes : null;
  });
  check(held <= HELD_MAX_BYTES, `${count} halves of bodies: ${(held / MB).toFixed(1)} MB held`);
  check(await isStrangerServed(), 'others are served meanwhile');
  leave();
  await watch.expectBack(check, 'when they have left');
}

async function tryLeavers({ edge, port, host, isPersonServed }, watch, count, check) {
  await leaveWhileDeciding(port, host, count / 2);
  await resetWhileDeciding(edge, host, count / 2);
  check(await isPersonServed(), `after ${count} leavers the person is served`);
  await watch.expectBack(check, 'after visitors that left while they were decided');
}

async function tryDeaf({ edge, port, host, isStrangerServed }, watch, count, check) {
  const leave = await askWithoutReading(port, host, count);
  check(await isStrangerServed(), 'others are served beside those that read nothing');
  const resident = (await edge.memory()).rss / MB;
  leave();
  await watch.expectBack(check, `after ${count} that read nothing (${resident.toFixed(0)} MB resident meanwhile)`);
}

async function tryKilled({ client, port, host }, watch, check) {
  const leave = await sendHalves(port, host, 20);
  const waiting = Array.from({ length: 40 }, (_, index) => {
    const address = `X-Forwarded-For: ${addressOf(index + 99_999)}`;
    const fields = [address, `Authorization: ${passwordOf(`again ${index}`)}`, 'Connection: close'];
    return statusOf(port, headOf(host, 'GET /slow', ...fields));
  });
  await pause(50);
  await client.kill();
  const statuses = await Promise.all(waiting);
  // Some of them may come when the edge knows of it already.
  const areRefused = statuses.every((status) => status === 401 || status >= 500);
  check(areRefused, `the client is killed meanwhile: strangers read ${[...new Set(statuses)]}`);
  leave();
  await watch.expectBack(check, 'after the client was killed');
}

await runScript(
  {
    name: 'deciding-flood',
    usage: USAGE,
    options: { bodies: 1000, leavers: 4000, deaf: 200 },
    limitSecs: ({ leavers }) => 240 + leavers / 20,
  },
  async ({ values: { bodies, leavers, deaf }, check }) => {
    const stand = await startStand();
    await warmUp(stand);
    check(await stand.isPersonServed(), 'a person with the password is served');
    const watch = await Watch.over(stand.edge);
    stand.reached.length = 0;
    await tryHalves(stand, watch, bodies, check);
    await tryLeavers(stand, watch, leavers, check);
    await tryDeaf(stand, watch, deaf, check);
    const others = stand.reached.filter((url) => url !== '/open' && url !== '/slow/me');
    check(others.length === 0, `${others.length} requests of all these reached the service`);
    await tryKilled(stand, watch, check);
    await stand.edge.close();
    return `${bodies} bodies, ${leavers} leavers, ${deaf} that read nothing, and a client that was killed: nothing is left behind`;
  },
);
