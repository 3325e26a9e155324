// A real `tunnel` process that is a member of a group. The process can be killed and restarted with the same home directory.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { cleanEnvironment } from '../../../../bench/lib/server.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { until } from '../../lib/until.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const GROUP_KEY = 'a key that all members share';

export class Member {
  /** Events printed with --json, from all runs of the process. */
  events = [];
  #edge;
  #args;
  #home = throwAwayFolder();
  #child = null;

  /** `flags` are appended to `tunnel http PORT` or `tunnel tcp PORT`. */
  constructor(edge, { protocol, localPort, group, flags = [] }) {
    this.#edge = edge;
    mkdirSync(join(this.#home, '.tunnel'), { mode: 0o700 });
    const keyFile = join(this.#home, 'group-key');
    writeFileSync(keyFile, GROUP_KEY, { mode: 0o600 });
    this.#args = [
      ...[CLI, protocol, String(localPort), '--json', '--group', group, '--group-key-file', keyFile, ...flags],
      ...['--server', edge.run.control, '--token-file', edge.run.admin_token_file],
    ];
  }

  /** The ready event since the last start; null before. */
  ready = null;

  async start() {
    this.ready = null;
    const child = startChild({
      name: 'tunnel',
      command: process.execPath,
      args: this.#args,
      env: cleanEnvironment(this.#home),
      cwd: this.#home,
      onLine: (line) => this.#heard(line),
    });
    this.#child = child;
    await Promise.race([until('the tunnel is open', () => this.ready, { timeoutMs: 30_000 }), failAtExit(child)]);
    return this;
  }

  get tunnelId() {
    return this.ready?.tunnel_id;
  }

  /** Public port of a tcp group. */
  get port() {
    return this.ready?.assigned_port;
  }

  /** Host header for an http group. */
  get host() {
    return new URL(this.ready.public_url).host;
  }

  eventsOf(kind) {
    return this.events.filter(({ event }) => event === kind);
  }

  /** Returns the member's summary from the edge's list of groups. */
  async summary() {
    const groups = await this.#edge.api('/api/groups');
    return groups.flatMap(({ members }) => members).find(({ tunnel_id }) => tunnel_id === this.tunnelId);
  }

  /** Kills the process with SIGKILL. */
  async kill() {
    await stopChild(this.#child, 'SIGKILL');
  }

  close() {
    return stopChild(this.#child, 'SIGTERM');
  }

  #heard(line) {
    if (!line.startsWith('{')) return;
    const event = JSON.parse(line);
    this.events.push(event);
    if (event.event === 'ready') this.ready = event;
  }
}
