// An edge with udp tunnels and a real `tunnel udp` process, with access to their flows, drops and datagram path.
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { cleanEnvironment } from '../../../../bench/lib/server.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { startEdge } from '../../lib/edge.mjs';
import { METER_ARGS, meterOf } from '../../lib/metered-child.mjs';
import { until } from '../../lib/until.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const MANY_FLOWS = 'connections_per_tunnel = 50000\nconnections_per_address = 50000';

/** Prints a message and ends the script if one of the programs is missing. Each command must succeed if its program is installed. */
export function needs(...commands) {
  for (const [program, ...args] of commands) {
    const { error } = spawnSync(program, args, { stdio: 'ignore', timeout: 20_000 });
    if (error === undefined) continue;
    process.stdout.write(`skipped: ${program} is not installed\n`);
    process.exit(0);
  }
}

/** Returns a UDP port that is free at the moment, outside the range of ephemeral ports. */
export async function freeUdpPort() {
  for (;;) {
    const port = 62_000 + Math.floor(Math.random() * 3000);
    const socket = createSocket('udp4');
    const bound = await new Promise((resolve) => {
      socket.once('error', () => resolve(false));
      socket.bind(port, '127.0.0.1', () => resolve(true));
    });
    socket.close();
    if (bound) return port;
  }
}

/** Starts an edge. `udp` contains lines of [udp], `limits` lines of [limits], and `ports` is the number of tunnel ports. */
export async function startUdpEdge({ udp = '', limits = MANY_FLOWS, tables = '', ports = 1 } = {}) {
  const port = await freeUdpPort();
  return startEdge({
    limits: `udp_port_range = [${port}, ${port + ports - 1}]\n${limits}`,
    tables: `[udp]\nports = [0, 0]\n${udp}\n${tables}`,
  });
}

export class UdpTunnel {
  events = [];
  ready = null;
  #edge;
  #args;
  #home = throwAwayFolder();
  #child = null;
  #ask = null;

  /** `control` is a host:port to dial instead of the edge's, for example a relay. */
  constructor(edge, localPort, { control = edge.run.control, flags = [] } = {}) {
    this.#edge = edge;
    this.#args = [
      ...[...METER_ARGS, CLI, 'udp', String(localPort), '--json', ...flags],
      ...['--server', control, '--token-file', edge.run.admin_token_file],
    ];
  }

  async start() {
    this.ready = null;
    const child = startChild({
      name: 'tunnel',
      command: process.execPath,
      args: this.#args,
      env: cleanEnvironment(this.#home),
      cwd: this.#home,
      ipc: true,
      onLine: (line) => this.#heard(line),
    });
    this.#ask = meterOf(child);
    this.#child = child;
    await Promise.race([until('the tunnel is open', () => this.ready, { timeoutMs: 30_000 }), failAtExit(child)]);
    return this;
  }

  get port() {
    return this.ready.assigned_port;
  }

  get pid() {
    return this.#child.pid;
  }

  /** Returns { flows, total, dropped, path, reason } from the edge's REST API. */
  flows() {
    return this.#edge.api(`/api/tunnels/${this.ready.tunnel_id}/flows`);
  }

  /** Waits until both ends send datagrams over this path. */
  async settle(path, timeoutMs = 20_000) {
    const isThere = async () => (await this.flows()).path === path && this.ways.at(-1)?.path === path;
    await until(`datagrams take ${path}`, isThere, { timeoutMs });
  }

  /** The `datagrams` events so far. */
  get ways() {
    return this.events.filter(({ event }) => event === 'datagrams');
  }

  memory() {
    return this.#ask('memory');
  }

  cpu() {
    return this.#ask('cpu');
  }

  kill() {
    return stopChild(this.#child, 'SIGKILL');
  }

  close() {
    return stopChild(this.#child, 'SIGTERM');
  }

  #heard(line) {
    if (!line.startsWith('{')) return;
    const event = { ...JSON.parse(line), atMs: performance.now() };
    this.events.push(event);
    if (event.event === 'ready') this.ready = event;
  }
}

/** Describes the drop counters that are not zero. */
export const dropsOf = (dropped) =>
  Object.entries(dropped)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${reason} ${count}`)
    .join(', ') || 'none';
