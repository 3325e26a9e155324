// Starts one of our servers and waits for its run.json.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { failAtExit, neutralEnvironment, startChild } from './children.mjs';

// The limit includes the creation of an embedded database at the first start.
const START_TIMEOUT_MS = 60_000;
/** Short, because some scenarios measure how long a start takes. */
const EVERY_MS = 5;

/** Returns the environment of a user without settings: no config file, no API key, no options for Node.js. */
export const cleanEnvironment = (home) => ({ ...neutralEnvironment(), HOME: home });

export async function startServer({ name, command, args, dataDir, cwd, env = {}, ipc = false }) {
  const child = startChild({ name, command, args, env: { ...cleanEnvironment(cwd), ...env }, cwd, ipc });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!existsSync(join(dataDir, 'run.json'))) {
    if (Date.now() > deadline) throw new Error(`${name} did not start: ${child.output}`);
    await Promise.race([delay(EVERY_MS), failAtExit(child)]);
  }
  return child;
}
