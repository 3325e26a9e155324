// A real `tunnel-server edge` with load balancing in a separate folder, with access to its REST API, metrics and resource use.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { startServer } from '../../../bench/lib/server.mjs';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { METER_ARGS, meterOf } from './metered-child.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');

const configOf = ({ port, serverLines = '', limits = '', loadBalancing = '', tables = '' }) => `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
drain_secs = 1
${serverLines}
[limits]
tcp_port_range = [${port}, ${port}]
${limits}
[load_balancing]
enabled = true
${loadBalancing}
${tables}
`;

/**
 * Starts an edge. `serverLines`, `limits` and `loadBalancing` are lines of these tables, and `tables` are whole tables; `server` is the
 * program, by default the executable of this repository.
 */
export async function startEdge({ server = SERVER, ...settings } = {}) {
  const folder = throwAwayFolder();
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(config, configOf({ port: await freePort(), ...settings }));
  const child = await startServer({
    name: 'edge',
    command: process.execPath,
    // The same size of the young generation as with `npm start`.
    args: [
      ...['--max-semi-space-size=4', ...METER_ARGS],
      ...[server, 'edge', '--config', config, '--data-dir', dataDir],
    ],
    dataDir,
    cwd: folder,
    ipc: true,
  });
  return new Edge(child, JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')));
}

class Edge {
  child;
  run;
  token;
  #ask;

  constructor(child, run) {
    this.child = child;
    this.run = run;
    this.token = readFileSync(run.admin_token_file, 'utf8').trim();
    this.#ask = meterOf(child);
  }

  get controlPort() {
    return Number(this.run.control.split(':').at(-1));
  }

  get httpPort() {
    return Number(new URL(this.run.http_url).port);
  }

  get headers() {
    return { authorization: `Bearer ${this.token}` };
  }

  async api(path) {
    const answer = await fetch(`${this.run.api_url}${path}`, { headers: this.headers });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** Returns the group of that name. Returns undefined if there is no such group. */
  async group(name) {
    return (await this.api('/api/groups')).find((group) => group.name === name);
  }

  /** Returns the values of a series as pairs of label text and value. */
  async series(name) {
    const text = await (await fetch(this.run.metrics_url)).text();
    const rows = text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'));
    return new Map([...rows].map(([, labels = '', value]) => [labels, Number(value)]));
  }

  memory() {
    return this.#ask('memory');
  }

  cpu() {
    return this.#ask('cpu');
  }

  handles() {
    return this.#ask('handles');
  }

  close() {
    return stopChild(this.child, 'SIGTERM');
  }
}
