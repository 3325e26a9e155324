// A real tunnel-server for tests of the repository: every port free, a data directory of its own.
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

// TCP tunnels cannot take port 0; these lie above the ephemeral ports of Linux.
const TCP_PORTS = '[61100, 61199]';

/** Lines of `server` go into the table [server], `rest` behind everything. */
export const makeServerDir = async (server = '', rest = ''): Promise<ServerDir> => {
  const dir = await temporaryDirectory();
  const dataDir = join(dir.path, 'data');
  const file = join(dir.path, 'server.toml');
  // A part that comes back must find the ports it had: none of them may be got by port 0, which others get by it meanwhile.
  const keys = ['control_port', 'api_port', 'metrics_port', 'http_port'];
  const ports = (await Promise.all(keys.map(async (key) => `${key} = ${await freePort()}`))).join('\n');
  const limits = `[limits]\ntcp_port_range = ${TCP_PORTS}`;
  writeFileSync(
    file,
    `[platform]\nport = ${await freePort()}\n[server]\n${server.includes('_port') ? server : `${ports}\n${server}`}\n${limits}\n${rest}\n`,
  );
  return { dir, dataDir, flags: ['--config', file, '--data-dir', dataDir] };
};

/** Programs that are given to `use` are gone at the end, the folder too. */
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

/** With a database that is there already, unless it is told to be the very first start. */
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

/** As a person does it; `npm` is the process whose pid the program has. */
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
