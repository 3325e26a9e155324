// A real stack with a certificate, and the real clients of the soak: three that keep running, and two group members that are killed
// repeatedly.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { cleanEnvironment, startServer } from '../../../../bench/lib/server.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { until } from '../../lib/until.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const CERT = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
const GROUP_KEY = 'a key that all members share';

/** Returns the configuration. `server` contains additional lines of the [server] table. */
const configText = (port, server) => `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
plain_http = "proxy"
drain_secs = 1
${server}
[platform]
port = 0
[platform.plans.free]
tunnel_limit = 100
[tls]
cert_path = "${CERT}"
key_path = "${KEY}"
[limits]
tcp_port_range = [${port}, ${port}]
[load_balancing]
enabled = true
`;

export async function startStack({ server = '' } = {}) {
  const folder = throwAwayFolder();
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  const tcpPort = await freePort();
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(config, configText(tcpPort, server));
  const child = await startServer({
    name: 'stack',
    command: process.execPath,
    // The same size of the young generation as with `npm start`.
    args: ['--max-semi-space-size=4', SERVER, 'stack', '--config', config, '--data-dir', dataDir],
    dataDir,
    cwd: folder,
  });
  const run = JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8'));
  return new Stack(child, run, { tcpPort, crashesDir: join(dataDir, 'crashes') });
}

class Stack {
  child;
  run;
  tcpPort;
  crashesDir;
  #token;

  constructor(child, run, { tcpPort, crashesDir }) {
    this.child = child;
    this.run = run;
    this.tcpPort = tcpPort;
    this.crashesDir = crashesDir;
    this.#token = readFileSync(run.admin_token_file, 'utf8').trim();
  }

  portOf(what) {
    const address = this.run[what];
    return Number(address.includes('//') ? new URL(address).port : address.split(':').at(-1));
  }

  /** Returns the sums of all series by name, regardless of labels. */
  async metrics() {
    const text = await read(this.run.metrics_url);
    const sums = {};
    for (const [, name, value] of text.matchAll(/^(\w+)(?:\{.*\})? (\S+)$/gm)) {
      sums[name] = (sums[name] ?? 0) + Number(value);
    }
    return sums;
  }

  connections() {
    return read(`${this.run.api_url}/api/connections`, { authorization: `Bearer ${this.#token}` });
  }

  /** Stops the stack and returns its exit. */
  async close() {
    await stopChild(this.child, 'SIGTERM');
    return this.child.exit;
  }
}

/** Requests a URL on a separate connection that is closed at once, so that the request itself is not counted. */
const read = (url, headers = {}) =>
  new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false, timeout: 10_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer of ${url} within 10 s`)));
    request.on('error', reject);
  });

/** A client process that can be killed and restarted. `args` are the arguments of `tunnel`. */
export class Client {
  #args;
  #home = throwAwayFolder();
  #child = null;
  #isReady = false;

  constructor(stack, args, groupName) {
    const keyFile = join(this.#home, 'group-key');
    writeFileSync(keyFile, GROUP_KEY, { mode: 0o600 });
    const group = groupName === undefined ? [] : ['--group', groupName, '--group-key-file', keyFile];
    const { control, admin_token_file } = stack.run;
    this.#args = [
      ...[CLI, ...args, ...group, '--json', '--wait', ...(args[0] === 'http' ? ['--quiet', '--no-inspect'] : [])],
      ...['--server', control, '--tls', '--ca-file', CERT, '--token-file', admin_token_file],
    ];
  }

  get pid() {
    return this.#child.pid;
  }

  async start() {
    this.#isReady = false;
    const child = startChild({
      name: `tunnel ${this.#args[1]}`,
      command: process.execPath,
      args: this.#args,
      env: cleanEnvironment(this.#home),
      cwd: this.#home,
      onLine: (line) => {
        this.#isReady ||= line.includes('"event":"ready"');
      },
    });
    this.#child = child;
    await Promise.race([until('the tunnel is open', () => this.#isReady, { timeoutMs: 30_000 }), failAtExit(child)]);
    return this;
  }

  kill() {
    return stopChild(this.#child, 'SIGKILL');
  }
}
