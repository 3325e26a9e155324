// A `tunnel-server edge` on ports that it has again after it was killed, and relays in front of its control port whose connections can be cut.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { cleanEnvironment } from '../../groups/lib/edge.mjs';
import { until } from '../../groups/lib/until.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');

export class LastingEdge {
  #folder = throwAwayFolder();
  #child = null;
  #token = '';
  run = null;
  httpPort = 0;

  async start() {
    if (this.httpPort === 0) await this.#prepare();
    const file = join(this.#folder, 'data/run.json');
    rmSync(file, { force: true });
    this.#child = startChild({
      name: 'edge',
      command: process.execPath,
      args: [SERVER, 'edge', '--config', this.#config, '--data-dir', join(this.#folder, 'data')],
      env: cleanEnvironment(this.#folder),
      cwd: this.#folder,
    });
    await Promise.race([until('the edge is ready', () => existsSync(file)), failAtExit(this.#child)]);
    this.run = JSON.parse(readFileSync(file, 'utf8'));
    this.#token = readFileSync(this.run.admin_token_file, 'utf8').trim();
    return this;
  }

  get #config() {
    return join(this.#folder, 'server.toml');
  }

  async #prepare() {
    mkdirSync(join(this.#folder, 'data'), { mode: 0o700 });
    const [control, http, tcp] = [await freePort(), await freePort(), await freePort()];
    this.httpPort = http;
    writeFileSync(
      this.#config,
      `[server]
control_port = ${control}
http_port = ${http}
api_port = 0
metrics_port = 0
https_port = 0
drain_secs = 1
[limits]
tcp_port_range = [${tcp}, ${tcp}]
[load_balancing]
enabled = true
`,
    );
  }

  async tunnels() {
    const answer = await fetch(`${this.run.api_url}/api/tunnels`, {
      headers: { authorization: `Bearer ${this.#token}` },
    });
    if (!answer.ok) throw new Error(`GET /api/tunnels: ${answer.status}`);
    return answer.json();
  }

  /** With no time for a last word. */
  kill() {
    return stopChild(this.#child, 'SIGKILL');
  }

  close() {
    return stopChild(this.#child, 'SIGTERM');
  }
}

/** Between a client and the control port: all of its connections go through here, carriers too. */
export async function startCutRelay(targetPort) {
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (client) => {
    const edge = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [client, edge],
      [edge, client],
    ]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    cutAll: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
