// Runs the built client with a home folder of the test.
import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { cleanEnv, type Ended, ROOT } from '../repo/checkout.fixture.ts';

export const DIST = join(ROOT, 'apps/cli/dist');
const BIN = join(ROOT, 'apps/cli/bin/tunnel.mjs');

/** Makes a home folder. Other users may look into it, as into most home folders. */
export async function homeFolder(): Promise<TemporaryDirectory> {
  const home = await temporaryDirectory();
  chmodSync(home.path, 0o755);
  return home;
}

export interface Run {
  readonly bin?: string;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs the client until it ends. */
export const runClient = (
  home: string,
  args: readonly string[],
  { bin = BIN, flags = [], env = {} }: Run = {},
): Promise<Ended> =>
  new Promise((resolve) => {
    const all = { ...cleanEnv(), HOME: home, NODE_V8_COVERAGE: undefined, ...env };
    execFile(process.execPath, [...flags, bin, ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });
