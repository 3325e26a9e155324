// What every proxy is tried with: an edge with TLS whose name only the proxy knows, two local services, a real `tunnel start` with an http and a tcp
// tunnel, and visitors who check every byte.
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { cleanEnvironment, startEdge } from '../../groups/lib/edge.mjs';
import { until } from '../../groups/lib/until.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
export const DOMAIN = 'tunnels.test';
const DOWNLOAD_BYTES = 32 * 1024 * 1024;
const ECHO_BYTES = 4 * 1024 * 1024;
export const CARRIERS = 4;

/** Ends the script with one line where one of these programs is missing; each is a command that succeeds where it is there. */
export function needs(...commands) {
  for (const [program, ...args] of commands) {
    const { error } = spawnSync(program, args, { stdio: 'ignore', timeout: 20_000 });
    if (error === undefined) continue;
    process.stdout.write(`skipped: ${program} is not installed\n`);
    process.exit(0);
  }
}

/** Key and certificate for these names, signed by itself: its own authority. */
export function makeCertificate(folder, name, ...hosts) {
  const [key, cert] = [join(folder, `${name}-key.pem`), join(folder, `${name}-cert.pem`)];
  const names = hosts.map((host) => (/^[\d.]+$/.test(host) ? `IP:${host}` : `DNS:${host}`)).join(',');
  const { status, stderr } = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert],
    ],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`openssl: ${stderr}`);
  return { key, cert };
}

export async function startStand() {
  const folder = throwAwayFolder();
  const tls = makeCertificate(folder, 'edge', DOMAIN, `*.${DOMAIN}`, 'localhost', '127.0.0.1');
  const tables = `[tls]\ncert_path = "${tls.cert}"\nkey_path = "${tls.key}"`;
  const edge = await startEdge({ serverLines: `domain = "${DOMAIN}"\nplain_http = "proxy"`, tables });
  return { folder, tls, edge, services: await startServices(), httpsPort: Number(new URL(edge.run.https_url).port) };
}

const BODY = randomBytes(DOWNLOAD_BYTES);
const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

async function startServices() {
  const http = createHttpServer((_request, response) => response.end(BODY));
  const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket));
  for (const server of [http, echo]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  return { httpPort: http.address().port, echoPort: echo.address().port };
}

/** A real `tunnel start`; `config`: lines of config.yml beside the tunnels, `server` among them. */
export class Client {
  events = [];
  child;
  #stand;
  #home = throwAwayFolder();

  constructor(stand, config, { files = {} } = {}) {
    this.#stand = stand;
    const { edge, services, tls } = stand;
    mkdirSync(join(this.#home, '.tunnel'), { mode: 0o700 });
    const lines = [
      `auth_token_file: ${edge.run.admin_token_file}`,
      ...(config.some((line) => line.startsWith('ca_file')) ? [] : [`ca_file: ${tls.cert}`]),
      ...config,
      'tunnels:',
      `  web: { proto: http, local_port: ${services.httpPort}, subdomain: web }`,
      `  echo: { proto: tcp, local_port: ${services.echoPort} }`,
    ];
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.#home, '.tunnel', name), text);
    writeFileSync(join(this.#home, '.tunnel/config.yml'), `${lines.join('\n')}\n`);
    this.child = startChild({
      name: 'tunnel',
      command: process.execPath,
      args: [CLI, 'start', '--json', '--no-inspect'],
      env: { ...cleanEnvironment(this.#home), TUNNEL_DEBUG: '1' },
      cwd: this.#home,
      onLine: (line) => line.startsWith('{') && this.events.push(JSON.parse(line)),
    });
  }

  all(event) {
    return this.events.filter((one) => one.event === event);
  }

  async ready() {
    const isReady = () => this.all('ready').length >= 2;
    const opened = until('both tunnels are open', isReady, { timeoutMs: 30_000 }).catch((error) => {
      throw new Error(`${error.message}; the client says:\n${this.child.output}`);
    });
    await Promise.race([opened, failAtExit(this.child)]);
    return this;
  }

  /** One download and one echo, each compared byte for byte. */
  async visit() {
    const port = this.all('ready').findLast(({ name }) => name === 'echo').assigned_port;
    const [download, echoed] = await Promise.all([fetchThrough(this.#stand.edge), echo(port)]);
    return download && echoed;
  }

  stop() {
    return stopChild(this.child, 'SIGTERM');
  }
}

const fetchThrough = ({ httpPort }) =>
  new Promise((resolve, reject) => {
    const asked = request({ port: httpPort, host: '127.0.0.1', headers: { host: `web.${DOMAIN}` } }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.once('error', reject);
      response.once('end', () => resolve(response.statusCode === 200 && digest(Buffer.concat(parts)) === digest(BODY)));
    });
    asked.once('error', reject);
    asked.end();
  });

const echo = (port) =>
  new Promise((resolve, reject) => {
    const sent = BODY.subarray(0, ECHO_BYTES);
    const parts = [];
    const socket = connect(port, '127.0.0.1', () => socket.end(sent));
    socket.on('data', (part) => parts.push(part));
    socket.once('end', () => resolve(digest(Buffer.concat(parts)) === digest(sent)));
    socket.once('error', reject);
  });

/** Connections that are open to a port of this machine. */
export function connectionsTo(port) {
  const { stdout } = spawnSync('ss', ['-Htn', 'state', 'established', 'dport', '=', `:${port}`], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line !== '').length;
}

/** All that the rounds of a proxy have in common: tunnels work over 4 carriers, all by the proxy, and come back after it was restarted. */
export async function tryProxy({ client, proxyPort, targetPort, restart }, { say, check }) {
  await client.ready();
  await until('all carriers are there', () => connectionsTo(proxyPort) >= CARRIERS + 1);
  say(`connections to the proxy: ${connectionsTo(proxyPort)}, to the edge: ${connectionsTo(targetPort)}`);
  check(connectionsTo(proxyPort) === CARRIERS + 1, `control and ${CARRIERS} carriers go by the proxy`);
  check(connectionsTo(targetPort) === CARRIERS + 1, 'and nothing goes to the edge beside it');
  check(await client.visit(), '32 MiB over http and 4 MiB each way over tcp, byte for byte');
  if (restart === undefined) return;
  const before = client.all('ready').map(({ public_url }) => public_url);
  const restartedAt = performance.now();
  await restart();
  await until('the client has noticed', () => client.all('reconnecting').length > 0, { timeoutMs: 40_000 });
  await until('the client is back', () => client.all('reconnected').length > 0, { timeoutMs: 60_000 });
  say(
    `back ${Math.round(performance.now() - restartedAt)} ms after the proxy was stopped: ${client.all('reconnecting')[0].reason}`,
  );
  await until('all carriers are back', () => connectionsTo(proxyPort) >= CARRIERS + 1);
  check(await client.visit(), 'and both tunnels work again');
  const urls = client.all('ready').map(({ public_url }) => public_url);
  check(
    before.every((url) => urls.includes(url)),
    'at the same addresses',
  );
}

/** What a client that is not let through says, and how it ends. */
export async function tryRefused({ stand, config, secret, words, requests }, { say, check }) {
  const startedAt = performance.now();
  const client = new Client(stand, config);
  const exit = await client.child.exited;
  const [line = ''] = client.child.output.split('\n').filter((one) => one.startsWith('tunnel: '));
  say(`${exit} after ${Math.round(performance.now() - startedAt)} ms: ${line}`);
  check(exit === 'exit code 5', 'exit code 5');
  check(line.includes(words), `one line that says: ${words}`);
  check(client.all('reconnecting').length === 0, 'no second try');
  check(!client.child.output.includes(secret), 'the password is not shown, with TUNNEL_DEBUG=1 neither');
  if (requests !== undefined) check(requests() === 1, 'the proxy was asked once');
}

/** A program of its own, on a port of its own; ready when somebody listens there. */
export async function startProgram(name, command, args, port, options = {}) {
  const child = startChild({ name, command, args, ...options });
  await Promise.race([until(`${name} listens`, () => isOpen(port)), failAtExit(child)]);
  return child;
}

const isOpen = (port) =>
  new Promise((resolve) => {
    const probe = connect(port, '127.0.0.1');
    probe.once('connect', () => resolve(true)).once('error', () => resolve(false));
    probe.once('connect', () => probe.destroy());
  });

export const readText = (file) => readFileSync(file, 'utf8');
export { freePort, stopChild };
