// Runs scripts of the checkout under test.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
export const SERVER_BIN = `${ROOT}/apps/server/bin/tunnel-server.mjs`;

/** READMEs of the examples, as paths in the checkout. */
export const EXAMPLE_PAGES = readdirSync(`${ROOT}/examples`, { withFileTypes: true }).map((entry) =>
  entry.isDirectory() ? `examples/${entry.name}/README.md` : `examples/${entry.name}`,
);

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns the environment without the npm settings of the running tests, like that of a new shell. */
export const cleanEnv = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_cache)|VITEST|NODE_ENV|INIT_CWD)/i.test(name)),
  );

export const run = (command: string, args: readonly string[], cwd = ROOT, env = cleanEnv()): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(command, args, { cwd, env, timeout: 240_000 }, (error, stdout, stderr) => {
      const failed = typeof error?.code === 'number' ? error.code : -1;
      resolve({ code: error === null ? 0 : failed, stdout, stderr });
    });
  });

export const node = (args: readonly string[], cwd = ROOT): Promise<Ended> => run(process.execPath, args, cwd);
