// Starts Debian's PgBouncer in front of the server of the database tests, in transaction mode: each transaction can use a different
// connection.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually, freePort } from '@tunnel/testkit';
import { DatabaseProxy } from '../apps/platform/src/db/database-proxy.fixture.ts';

const START_TIMEOUT_MS = 20_000;

/** Returns a strict PgBouncer configuration, which ignores no connection parameters. */
const settings = (port: number, server: URL): string => `
[databases]
* = host=${server.hostname} port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 2000
default_pool_size = 20
server_idle_timeout = 3
autodb_idle_timeout = 3
log_connections = 0
log_disconnections = 0
log_stats = 0
`;

const NOBODY = 65_534;

interface Parts {
  readonly url: Secret;
  readonly dir: string;
  readonly child: ChildProcess;
  readonly way: DatabaseProxy;
}

export class PgBouncer {
  readonly url: Secret;
  readonly #options: Parts;

  private constructor(options: Parts) {
    this.url = options.url;
    this.#options = options;
  }

  static async start(program: string, server: Secret): Promise<PgBouncer> {
    // PgBouncer connects through a proxy, because the socket of the embedded database is in a folder that only the database's user and
    // root can access.
    const way = new DatabaseProxy(server);
    const target = new URL((await way.reserve()).reveal());
    await way.open();
    const dir = mkdtempSync('/tmp/tunnel-pgbouncer-');
    const port = await freePort();
    chmodSync(dir, 0o755);
    const file = join(dir, 'pgbouncer.ini');
    writeFileSync(file, settings(port, target));
    // PgBouncer refuses to run as root.
    const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    const child = spawn(program, ['-q', file], { cwd: '/', stdio: ['ignore', 'ignore', 'inherit'], ...user });
    const url = new Secret(`postgres://postgres@127.0.0.1:${port}/postgres`);
    const started = new PgBouncer({ url, dir, child, way });
    try {
      await eventually(() => canDial(port), { timeoutMs: START_TIMEOUT_MS });
      return started;
    } catch (error) {
      await started.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    const { child, dir, way } = this.#options;
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
    await way.cut();
    rmSync(dir, { recursive: true, force: true });
  }
}

const canDial = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });
