// An edge on the loopback interface that can be killed and restarted on the same ports, and our client in both p2p roles, with events and
// their times.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { cleanEnvironment, startServer } from '../../../../bench/lib/server.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { until } from '../../lib/until.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const CLIENT = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const BIG_FILE = new URL('big-file.mjs', import.meta.url).pathname;

/** An edge with fixed ports: they are the same after every start. */
export class P2pEdge {
  folder = throwAwayFolder();
  control;
  #child;
  #run;

  static async start(tables = '') {
    const edge = new P2pEdge();
    const control = await freePort();
    const api = await freePort();
    edge.control = `127.0.0.1:${control}`;
    const server = `[server]\ncontrol_port = ${control}\napi_port = ${api}\nmetrics_port = 0\nhttp_port = 0\nhttps_port = 0\n`;
    writeFileSync(join(edge.folder, 'server.toml'), `${server}[limits]\nudp_port_range = [62100, 62199]\n${tables}`);
    mkdirSync(join(edge.folder, 'data'), { mode: 0o700 });
    await edge.begin();
    return edge;
  }

  async begin() {
    const dataDir = join(this.folder, 'data');
    const file = join(dataDir, 'run.json');
    rmSync(file, { force: true });
    const args = [SERVER, 'edge', '--config', join(this.folder, 'server.toml'), '--data-dir', dataDir];
    const cwd = this.folder;
    this.#child = await startServer({ name: 'edge', command: process.execPath, args, dataDir, cwd });
    this.#run = JSON.parse(readFileSync(file, 'utf8'));
  }

  kill() {
    return stopChild(this.#child);
  }

  get pid() {
    return this.#child.pid;
  }

  get output() {
    return this.#child.output;
  }

  get tokenFile() {
    return this.#run.admin_token_file;
  }

  async rest(method, path) {
    const authorization = `Bearer ${readFileSync(this.tokenFile, 'utf8').trim()}`;
    // The connection is not reused, because the next request may reach a different edge process.
    const asked = request(new URL(path, this.#run.api_url), {
      method,
      headers: { authorization },
      agent: false,
    });
    asked.end();
    const [response] = await once(asked, 'response');
    let text = '';
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode, body: text === '' ? null : JSON.parse(text) };
  }

  /** Returns the id of the tunnel that publishes the name. */
  async tunnelOf(name) {
    const { body } = await this.rest('GET', '/api/tunnels');
    return body.find(({ public_url }) => public_url === `p2p://${name}`)?.tunnel_id;
  }

  async peersOf(name) {
    const id = await this.tunnelOf(name);
    return id === undefined ? [] : (await this.rest('GET', `/api/tunnels/${id}/peers`)).body.peers;
  }
}

export function secretFile(folder, text = randomBytes(32).toString('base64url')) {
  const file = join(folder, `secret-${randomBytes(4).toString('hex')}`);
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return file;
}

/** A single run of `tunnel p2p …`. */
export class P2pProgram {
  events = [];
  child;

  constructor(edge, args, { secret, server = edge.control, program = CLIENT, flags = [] }) {
    const all = [
      program,
      'p2p',
      ...args,
      '--json',
      '--server',
      server,
      '--token-file',
      edge.tokenFile,
      '--secret-file',
      secret,
    ];
    const home = throwAwayFolder();
    this.child = startChild({
      name: args.slice(0, 2).join(' '),
      command: process.execPath,
      args: [...all, ...flags],
      env: cleanEnvironment(home),
      onLine: (line) => this.events.push({ ...JSON.parse(line), heardAt: Date.now() }),
    });
  }

  has(fields, sinceAt = 0) {
    const isLike = (event) =>
      event.heardAt >= sinceAt && Object.entries(fields).every(([key, value]) => event[key] === value);
    return this.events.some(isLike);
  }

  async says(fields, { timeoutMs = 20_000, sinceAt = 0 } = {}) {
    const what = `${this.child.name} says ${JSON.stringify(fields)}`;
    const failed = failAtExit(this.child);
    failed.catch(() => {});
    const said = until(what, () => this.has(fields, sinceAt), { timeoutMs });
    await Promise.race([said, failed]).catch((error) => {
      throw new Error(
        `${error.message}: ${this.events.map((event) => JSON.stringify(event)).join('\n')} ${this.child.output}`,
      );
    });
  }

  get port() {
    return Number(
      this.events
        .find(({ event }) => event === 'ready')
        .listen.split(':')
        .at(-1),
    );
  }

  get path() {
    const { path, reason } = this.events.findLast(({ event }) => event === 'path') ?? {};
    return [path, reason].join(' ').trim();
  }

  stop(signal) {
    return stopChild(this.child, signal);
  }
}

/** Starts the service that sends files, and returns its port. */
export async function startBigFiles() {
  const child = startChild({ name: 'files', command: process.execPath, args: [BIG_FILE, 'serve'] });
  await until('the files are served', () => child.output.includes('\n'));
  return Number(child.output);
}

/** Starts a visitor of that service in a separate process. After the end, `said` is `ok` if every byte was correct. */
export function startDownload(port, bytes, perSecond) {
  const given = [port, bytes, ...(perSecond === undefined ? [] : [perSecond])].map(String);
  const child = startChild({
    name: `download ${bytes}`,
    command: process.execPath,
    args: [BIG_FILE, 'down', ...given],
  });
  /** Whether a download with a pace has received its first byte. The program takes a moment to start. */
  const hasBegun = () => child.output.startsWith('begun');
  const visit = { isOver: false, said: '', over: child.exited, hasBegun };
  visit.over = child.exited.then(() => {
    visit.isOver = true;
    visit.said = child.output.trim().split('\n').at(-1);
    return visit.said;
  });
  return visit;
}
