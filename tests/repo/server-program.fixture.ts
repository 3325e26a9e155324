// Starts a real tunnel-server with free ports and a separate data directory.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, type Program, spawnProgram, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { copyDatabase } from '../system/database-template.fixture.ts';
import { cleanEnv, ROOT, SERVER_BIN } from './checkout.fixture.ts';

export interface ServerDir {
  readonly dir: TemporaryDirectory;
  readonly dataDir: string;
  readonly flags: readonly string[];
}

export interface RunJson {
  readonly pid: number;
  readonly api_url: string;
  readonly control: string;
  readonly metrics_url: string;
  readonly simulator_url: string;
  readonly admin_token_file: string;
}

// Port range of TCP tunnels, which cannot use port 0. The range lies above the ephemeral ports of Linux.
const TCP_PORTS = '[61100, 61199]';

/** Creates the folder of a server. `server` contains lines of the [server] table; `rest` is appended to the file. */
export const makeServerDir = async (server = '', rest = ''): Promise<ServerDir> => {
  const dir = await temporaryDirectory();
  const dataDir = join(dir.path, 'data');
  const file = join(dir.path, 'server.toml');
  // The ports are fixed, because a restarted part must find its previous ports. With port 0 a different program could take them in the
  // meantime.
  const keys = ['control_port', 'api_port', 'metrics_port', 'http_port'];
  const ports = (await Promise.all(keys.map(async (key) => `${key} = ${await freePort()}`))).join('\n');
  const limits = `[limits]\ntcp_port_range = ${TCP_PORTS}`;
  writeFileSync(
    file,
    `[platform]\nport = ${await freePort()}\n[server]\n${server.includes('_port') ? server : `${ports}\n${server}`}\n${limits}\n${rest}\n`,
  );
  return { dir, dataDir, flags: ['--config', file, '--data-dir', dataDir] };
};

/** Runs `act` with a server folder. Programs passed to `use` are stopped at the end, and the folder is deleted. */
export const withServerDir = async (
  act: (at: ServerDir, use: (program: Program) => Program) => Promise<void>,
): Promise<void> => {
  const at = await makeServerDir();
  const programs: Program[] = [];
  try {
    await act(at, (program) => {
      programs.push(program);
      return program;
    });
  } finally {
    for (const program of programs) await program.close();
    await at.dir.close();
  }
};

const withoutOurs = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));

/** Copies an existing database into the data directory, to save the time of a first start. */
const prepare = async ({ dataDir }: ServerDir): Promise<void> => {
  if (!existsSync(dataDir)) await copyDatabase(dataDir);
};

export const startServer = async (
  serverDir: ServerDir,
  env: Record<string, string> = {},
  { isFirst = false } = {},
): Promise<Program> => {
  if (!isFirst) await prepare(serverDir);
  return spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, 'stack', ...serverDir.flags],
    env: { ...withoutOurs, ...cleanEnv(), ...env },
    cwd: serverDir.dir.path,
  });
};

/** Starts the server with npm, like a developer. The program's pid is that of npm. */
export const startWithNpm = async (serverDir: ServerDir): Promise<Program> => {
  await prepare(serverDir);
  return spawnProgram({
    command: 'npm',
    args: ['start', '--', ...serverDir.flags],
    env: { ...withoutOurs, ...cleanEnv() },
    cwd: ROOT,
  });
};

export const waitUntilReady = async (program: Program): Promise<number> => {
  const [, pid] = await program.waitForLine(/is ready \(pid (\d+)\)/, { timeoutMs: 60_000 });
  return Number(pid);
};

export const readRunJson = (serverDir: ServerDir): RunJson =>
  JSON.parse(readFileSync(join(serverDir.dataDir, 'run.json'), 'utf8')) as RunJson;
