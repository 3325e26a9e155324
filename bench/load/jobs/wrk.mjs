// Many HTTP requests by wrk: a short run to warm up, then the one that counts. Any error is a failed run.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readReport, wrkArgs } from '../../lib/wrk.mjs';

const run = promisify(execFile);
const STUCK_AFTER_MS = 20_000;

/** @param {{ command: string, connections: number, bytes: number, keepAlive: boolean, warmUpSecs: number, seconds: number }} parameters */
export async function wrk(address, parameters, ready) {
  await once(address, parameters, parameters.warmUpSecs);
  await ready();
  return once(address, parameters, parameters.seconds);
}

async function once(address, parameters, seconds) {
  const options = { timeout: seconds * 1000 + STUCK_AFTER_MS, killSignal: 'SIGKILL' };
  const { stdout } = await run(parameters.command, wrkArgs(address, { ...parameters, seconds }), options);
  return readReport(stdout);
}
