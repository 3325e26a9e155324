// A tunnel-server in a separate data directory, as an executable or inside the test process, with access to its REST API and metrics.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Clock, Secret } from '@tunnel/runtime';
import { type PortBlock, type Program, spawnProgram } from '@tunnel/testkit';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { cleanEnv, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { copyDatabase } from './database-template.fixture.ts';
import { runServerInProcess } from './server-in-process.fixture.ts';

export const TLS_CERT = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
export const TLS_KEY = fileURLToPath(new URL('../../packages/testkit/fixtures/tls/key.pem', import.meta.url));

export interface StackOptions {
  /** Runs the executable, for tests of signals, exit codes, kill -9, memory or printed text. Defaults to the choice of the harness. */
  readonly programs?: boolean;
  /** Clock of a server inside the test process. Defaults to the system clock. */
  readonly clock?: Clock;
  /** Database of a stack or platform inside the test process, which cannot start an embedded database. */
  readonly databaseUrl?: string;
  /** Command of the server. Most tests need only the edge, which starts faster; 'stack' also runs the platform with its database. */
  readonly command?: 'edge' | 'stack' | 'platform';
  /** Lines for the table [platform]. */
  readonly platform?: string;
  /** Lines for the table [server]. */
  readonly server?: string;
  /** Lines for the table [limits]. */
  readonly limits?: string;
  /** Complete tables, added after the standard tables. */
  readonly tables?: string;
  /** Number of public ports. Defaults to all ports of the block. */
  readonly tcpPorts?: number;
  /** Uses the same ports at every start, so that the platform listens at its public URL. */
  readonly fixedPorts?: boolean;
  readonly tls?: boolean;
  /** Maximum number of file descriptors of the process. Defaults to the limit of the test process. */
  readonly descriptors?: number;
  /** Makes the output of a server inside the test process a terminal. `verbose` also sets the flag of the same name. */
  readonly terminal?: 'plain' | 'verbose';
  /** Variables added to the environment of the process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Path of another build of tunnel-server, which runs as an executable and creates its own database. */
  readonly bin?: string;
}

export interface TunnelRow {
  readonly tunnel_id: string;
  readonly session_id: string;
  readonly name: string;
  readonly protocol: string;
  readonly label: string;
  readonly public_url: string;
  readonly assigned_port: number;
  readonly client_addr: string;
  readonly request_count: number;
  readonly bytes_proxied: number;
}

interface RunJson {
  readonly platform_url: string;
  readonly api_url: string;
  readonly control: string;
  readonly http_url: string;
  readonly metrics_url: string;
  readonly simulator_url: string;
  readonly admin_token_file: string;
}

const READY = /is ready \(pid \d+\)/;
/**
 * Time limit for a start in milliseconds. Two busy cores start a process in a second or two, and ten processes at once in several
 * seconds.
 */
const START_TIMEOUT_MS = 60_000;

export const withoutOurEnvironment = (): Record<string, string | undefined> => ({
  ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])),
  ...cleanEnv(),
  TUNNEL_API_KEY: undefined,
});

export class Stack {
  readonly tcpPorts: { readonly from: number; readonly to: number };
  readonly isInProcess: boolean;
  readonly #dir: string;
  readonly #file: string;
  readonly #flags: readonly string[];
  readonly #command: 'edge' | 'stack' | 'platform';
  readonly #descriptors: number | undefined;
  readonly #env: Readonly<Record<string, string>>;
  readonly #clock: Clock | undefined;
  readonly #databaseUrl: string | undefined;
  readonly #terminal: StackOptions['terminal'];
  readonly #hasTemplate: boolean;
  /** Path of tunnel-server. A change takes effect at the next start, as in an upgrade. */
  bin: string;
  #program: Program | undefined;

  /** Creates the config file in `dir`, an empty folder used by no other stack. */
  constructor(dir: string, ports: PortBlock, options: StackOptions = {}) {
    this.#dir = dir;
    this.tcpPorts = { from: ports.from, to: ports.from + (options.tcpPorts ?? ports.to - ports.from + 1) - 1 };
    this.#file = join(dir, 'server.toml');
    writeFileSync(this.#file, configText(this.tcpPorts, ports, options));
    this.#flags = ['--config', this.#file, '--data-dir', this.dataDir];
    this.#command = options.command ?? 'edge';
    this.isInProcess = options.programs === false;
    this.#clock = options.clock;
    this.#databaseUrl = options.databaseUrl;
    this.#terminal = options.terminal;
    this.#descriptors = options.descriptors;
    this.#env = options.env ?? {};
    this.#hasTemplate = options.bin === undefined && this.#command !== 'edge';
    this.bin = options.bin ?? SERVER_BIN;
  }

  get dataDir(): string {
    return join(this.#dir, 'data');
  }

  /** --config and --data-dir, for commands beside the running server. */
  get flags(): readonly string[] {
    return this.#flags;
  }

  get program(): Program {
    if (this.#program === undefined) throw new Error('the stack was never started');
    return this.#program;
  }

  /** Starts the server, or restarts it on the same data directory after any kind of end. */
  async start(): Promise<void> {
    // A killed server inside the test process takes a moment to end.
    if (this.isInProcess) await this.#program?.waitForExit();
    this.#program = this.isInProcess ? this.#startHere() : await this.#spawn();
    await this.#program.waitForLine(READY, { timeoutMs: START_TIMEOUT_MS });
  }

  #startHere(): Program {
    return runServerInProcess({
      command: this.#command,
      config: this.#file,
      dataDir: this.dataDir,
      workingDir: this.#dir,
      env: { ...withoutOurEnvironment(), ...this.#env },
      ...(this.#clock === undefined ? {} : { clock: this.#clock }),
      ...(this.#terminal === undefined ? {} : { terminal: this.#terminal }),
    });
  }

  async #spawn(): Promise<Program> {
    if (this.#program === undefined && this.#hasTemplate) await copyDatabase(this.dataDir);
    const args = [this.bin, this.#command, ...this.#flags];
    // The shell replaces itself by the server, so that the server keeps the pid of the shell.
    const limited = ['-c', `ulimit -n ${this.#descriptors}; exec "$0" "$@"`, process.execPath, ...args];
    return spawnProgram({
      ...(this.#descriptors === undefined ? { command: process.execPath, args } : { command: 'sh', args: limited }),
      env: { ...withoutOurEnvironment(), ...this.#env },
      cwd: this.#dir,
    });
  }

  /** Kills the server with -9, and waits for its end. The data directory stays as it is. */
  async kill(): Promise<void> {
    this.program.signal('SIGKILL');
    await this.program.waitForExit();
  }

  async close(): Promise<void> {
    // A database has a separate process group, and ends only if its server is stopped in order.
    if (!this.isInProcess && this.#command !== 'edge' && this.#program?.exit === null) await this.stop();
    await this.#program?.close();
  }

  /** URL of the database of a running server, or null if the server has no database. */
  get databaseUrl(): Secret | null {
    return this.#databaseUrl === undefined ? embeddedUrl(this.dataDir) : new Secret(this.#databaseUrl);
  }

  /** Stops the server in order with SIGTERM. */
  async stop(): Promise<void> {
    this.program.signal('SIGTERM');
    await this.program.waitForExit({ timeoutMs: START_TIMEOUT_MS });
  }

  get run(): RunJson {
    return JSON.parse(readFileSync(join(this.dataDir, 'run.json'), 'utf8')) as RunJson;
  }

  /** Address of the control port as host:port, for --server. */
  get control(): string {
    return this.run.control;
  }

  get controlPort(): number {
    return Number(this.control.split(':').at(-1));
  }

  get tokenFile(): string {
    return join(this.dataDir, 'admin-token');
  }

  api(path: string, options: { readonly method?: string; readonly token?: string } = {}): Promise<Response> {
    const token = options.token ?? readFileSync(this.tokenFile, 'utf8').trim();
    return fetch(`${this.run.api_url}${path}`, {
      method: options.method ?? 'GET',
      headers: { authorization: `Bearer ${token}` },
    });
  }

  async tunnels(token?: string): Promise<TunnelRow[]> {
    const answer = await this.api('/api/tunnels', token === undefined ? {} : { token });
    return (await answer.json()) as TunnelRow[];
  }

  async tunnel(tunnelId: string): Promise<TunnelRow | undefined> {
    return (await this.tunnels()).find((row) => row.tunnel_id === tunnelId);
  }

  /** Returns the value of a metric. `name` is a regular expression, and includes the labels of the series. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(this.run.metrics_url)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  }
}

const configText = (
  range: { from: number; to: number },
  { fixed, from, to }: PortBlock,
  options: StackOptions,
): string =>
  [
    '[platform]',
    `port = ${options.fixedPorts === true ? fixed.platform : 0}`,
    options.fixedPorts === true && options.platform === undefined
      ? `public_url = "http://localhost:${fixed.platform}"`
      : '',
    options.platform ?? '',
    // Most tests need accounts without invitations, even if the stack has a public address.
    options.platform?.includes('sign_up') === true ? '' : 'sign_up = "open"',
    '[server]',
    `control_port = ${options.fixedPorts === true ? fixed.control : 0}`,
    `api_port = ${options.fixedPorts === true ? fixed.api : 0}`,
    `metrics_port = ${options.fixedPorts === true ? fixed.metrics : 0}`,
    `http_port = ${options.fixedPorts === true ? fixed.http : 0}`,
    'https_port = 0',
    options.server ?? '',
    '[limits]',
    `tcp_port_range = [${range.from}, ${range.to}]`,
    // UDP ports are counted apart from TCP ports, so the same range serves both.
    `udp_port_range = [${from}, ${to}]`,
    options.limits ?? '',
    options.tls === true ? `[tls]\ncert_path = "${TLS_CERT}"\nkey_path = "${TLS_KEY}"` : '',
    options.databaseUrl === undefined ? '' : `[database]\nurl = "${options.databaseUrl}"`,
    options.tables ?? '',
    '',
  ].join('\n');
