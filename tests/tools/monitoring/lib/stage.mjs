// What Prometheus scrapes: a stack and a separate platform, both with backups, and clients whose tunnels get visitors all the time.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { startEchoServer } from '../../../../packages/testkit/src/network/tcp-servers.ts';
import { startUdpEcho } from '../../../../packages/testkit/src/network/udp-services.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import { pidOfPart } from '../../../system/kill-trial.fixture.ts';
import { signUpPayer } from '../../../system/payer.fixture.ts';
import { TLS_CERT } from '../../../system/stack.fixture.ts';
import { until } from '../../lib/until.mjs';

const HOST = '127.0.0.1';
const PASSWORD = 'visitor:open sesame for metrics';
const UNUSED_PORT = 9;
const PATIENCE = { timeoutMs: 240_000, everyMs: 200 };

export class Stage {
  counts = { http: 0, group: 0, policy: 0, tcp: 0, udp: 0, failed: 0 };
  #harness = new Harness();
  #timers = [];
  #sockets = [];
  #tick = 0;

  static async open() {
    const stage = new Stage();
    try {
      await stage.#start();
    } catch (error) {
      await stage.close();
      throw error;
    }
    return stage;
  }

  get edge() {
    return new URL(this.stack.run.metrics_url).host;
  }

  get separatePlatform() {
    return new URL(this.platform.run.platform_url).host;
  }

  /** Waits until both servers have a backup. */
  async backedUp() {
    const hasBackup = async (url, headers = {}) =>
      /^tunnel_backup_last_success_timestamp_seconds [1-9]/m.test(await (await fetch(url, { headers })).text());
    const { token, platform, stack } = this;
    await until('a backup of the stack', () => hasBackup(stack.run.metrics_url), PATIENCE);
    const ofPlatform = `${platform.run.platform_url}/metrics`;
    await until(
      'a backup of the platform',
      () => hasBackup(ofPlatform, { authorization: `Bearer ${token}` }),
      PATIENCE,
    );
  }

  /** Ends a process of the stack with SIGKILL. */
  kill(part) {
    process.kill(pidOfPart(this.stack.dataDir, part), 'SIGKILL');
  }

  /** Starts the visitors. */
  begin() {
    const every = (ms, visit) =>
      this.#timers.push(
        setInterval(() => {
          visit().catch(() => {
            this.counts.failed += 1;
          });
        }, ms),
      );
    every(100, () => this.#visitWeb());
    every(400, () => this.#visitGroup());
    every(700, () => this.#visitWithPassword());
    every(900, () => this.#visitEcho());
    every(150, () => this.#sendDatagrams());
    every(1000, () => this.payer.client(this.stack).billing());
    every(20_000, () => this.#tryWrongKey());
  }

  /** Number of requests that the edge has captured of the busiest tunnel. */
  async captured() {
    const answer = await this.stack.api(`/api/tunnels/${this.web.tunnel_id}/requests`, { token: this.key });
    const { requests } = await answer.json();
    return requests.length;
  }

  stopVisitors() {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }

  async close() {
    this.stopVisitors();
    for (const socket of this.#sockets) socket.close();
    await this.#harness.close();
  }

  async #start() {
    const harness = this.#harness;
    const backups = await harness.folder();
    const tables = (name) => `[backup]\ndir = "${join(backups, name)}"\n[load_balancing]\nenabled = true`;
    this.stack = await harness.stack({
      ...{ command: 'stack', fixedPorts: true, tls: true, tables: tables('stack') },
      // With a certificate, visitors on the HTTP port are redirected by default.
      server: 'plain_http = "proxy"',
    });
    this.platform = await harness.stack({ command: 'platform', fixedPorts: true, tables: tables('platform') });
    this.token = readFileSync(this.platform.tokenFile, 'utf8').trim();
    this.payer = await signUpPayer(this.stack);
    const { token: key } = await this.payer.client(this.stack).createKey({ label: 'services' });
    this.key = key;
    await this.#openTunnels();
  }

  async #openTunnels() {
    const folder = await this.#harness.folder();
    const web = this.#harness.use(await startWeb());
    const echo = this.#harness.use(await startEchoServer());
    const datagrams = this.#harness.use(await startUdpEcho());
    const passwords = join(folder, 'passwords');
    writeFileSync(passwords, `${PASSWORD}\n`, { mode: 0o600 });
    const groupKey = join(folder, 'group-key');
    writeFileSync(groupKey, randomBytes(24).toString('hex'), { mode: 0o600 });
    const health = ['--health', 'http:/health', '--health-interval', '1'];
    const member = ['--group', 'pool', '--group-key-file', groupKey, ...health];
    const port = String(web.port);
    [this.web, this.locked, this.away, this.group, this.echo, this.closed, this.datagrams] = await Promise.all([
      this.#tunnel(['http', port, '--subdomain', 'web']),
      this.#tunnel(['http', port, '--subdomain', 'locked', '--basic-auth-file', passwords]),
      this.#tunnel(['http', String(UNUSED_PORT), '--subdomain', 'away']),
      this.#tunnel(['http', port, ...member]),
      this.#tunnel(['tcp', String(echo.port)]),
      this.#tunnel(['tcp', String(UNUSED_PORT)]),
      this.#tunnel(['udp', String(datagrams.port)]),
    ]);
    await this.#tunnel(['http', port, ...member]);
    this.#sockets = [1, 2, 3].map(() => createSocket('udp4').on('error', () => {}));
  }

  async #tunnel(args) {
    const where = ['--json', '--server', this.stack.control, '--tls', '--ca-file', TLS_CERT];
    const program = await this.#harness.run([...args, ...where], { env: { TUNNEL_API_KEY: this.key } });
    return program.ready();
  }

  /** Requests at a changing rate. Most succeed; a few are unknown pages, a service that is not running, or an error of the service. */
  async #visitWeb() {
    this.#tick += 1;
    const wave = 2 + Math.round(2 * Math.sin(this.#tick / 60));
    await Promise.all(Array.from({ length: wave }, (_, n) => this.#get(this.web, `/page/${n}`)));
    if (this.#tick % 20 === 0) await this.#get(this.web, '/missing');
    if (this.#tick % 100 === 0) await this.#get(this.away, '/');
    if (this.#tick % 150 === 0) await this.#get(this.web, '/broken');
    if (this.#tick % 10 === 0) await this.#get(this.web, '/', { isTls: true });
    this.counts.http += wave;
  }

  async #visitGroup() {
    await this.#get(this.group, '/');
    this.counts.group += 1;
  }

  async #visitWithPassword() {
    const authorization = `Basic ${Buffer.from(PASSWORD).toString('base64')}`;
    await this.#get(this.locked, '/', { headers: this.counts.policy % 3 === 0 ? {} : { authorization } });
    this.counts.policy += 1;
  }

  /** Sends 20 kB through the TCP tunnel, and connects to a tunnel without a local service. */
  async #visitEcho() {
    await converse(this.echo.assigned_port, Buffer.alloc(20_000, 'v'));
    this.counts.tcp += 1;
    if (this.counts.tcp % 5 === 0) await converse(this.closed.assigned_port, Buffer.alloc(1)).catch(() => {});
  }

  async #sendDatagrams() {
    for (const socket of this.#sockets) socket.send(Buffer.alloc(500, 'd'), this.datagrams.assigned_port, HOST);
    this.counts.udp += this.#sockets.length;
  }

  async #tryWrongKey() {
    await fetch(`${this.stack.run.api_url}/api/tunnels`, { headers: { authorization: 'Bearer tnl_wrong' } });
  }

  /** Visits an HTTP tunnel on a connection of its own. Resolves with the status. */
  #get({ public_url }, path, { headers = {}, isTls = false } = {}) {
    const { http_url, https_url } = this.stack.run;
    const { port } = new URL(isTls ? https_url : http_url);
    const host = new URL(public_url).hostname;
    const options = { host: HOST, port, path, agent: false, headers: { host, ...headers }, timeout: 10_000 };
    const send = isTls ? requestTls : request;
    return new Promise((resolve, reject) => {
      send({ ...options, ...(isTls ? { rejectUnauthorized: false, servername: host } : {}) }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
        response.on('error', reject);
      })
        .on('timeout', function late() {
          this.destroy(new Error('no response within 10 s'));
        })
        .on('error', reject)
        .end();
    });
  }
}

/** A web service: pages of a few kB, /missing, /broken, and /health for the health checks. */
async function startWeb() {
  const server = createServer(({ url }, response) => {
    const status = { '/missing': 404, '/broken': 500 }[url] ?? 200;
    response.writeHead(status, { 'content-type': 'text/plain' }).end(Buffer.alloc(4000, 'w'));
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { port: server.address().port, close };
}

/** Sends bytes to an echo service, and waits until as many have come back. */
function converse(port, bytes) {
  return new Promise((resolve, reject) => {
    let heard = 0;
    const socket = connect(port, HOST, () => socket.end(bytes));
    socket.on('data', (piece) => {
      heard += piece.length;
    });
    socket.on('error', reject);
    socket.on('close', () => (heard === bytes.length ? resolve() : reject(new Error(`${heard} bytes came back`))));
  });
}
