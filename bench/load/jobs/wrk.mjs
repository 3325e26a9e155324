// Many HTTP requests by wrk: short runs to warm up, and then the measured run. Any error fails the run.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readReport, wrkArgs } from '../../lib/wrk.mjs';

const execute = promisify(execFile);
const STUCK_AFTER_MS = 20_000;
// Maximum number of warm-up runs. Hot code is compiled after a number of calls rather than after a time, so a busy machine needs more
// runs.
const WARM_UP_RUNS_MAX = 12;

/**
 * @param {{ command: string, connections: number, bytes: number, keepAlive: boolean, warmUpRequests: number, warmUpRuns?: number, seconds: number,
 *   path?: string, headers?: string[], body?: string, names?: number, name?: string | null }} parameters `path` if it is not a path of the origin; `body` for
 *   a POST; `names` is the number of tunnels to request in turn; `name` is the Host header; null for the address
 */
export async function wrk(address, parameters, ready) {
  let warm = 0;
  const runs = parameters.warmUpRuns ?? WARM_UP_RUNS_MAX;
  for (let run = 0; run < runs && warm < parameters.warmUpRequests; run++) {
    warm += (await once(address, parameters, 1)).requests;
  }
  await ready();
  return once(address, parameters, parameters.seconds);
}

async function once(address, parameters, seconds) {
  const options = { timeout: seconds * 1000 + STUCK_AFTER_MS, killSignal: 'SIGKILL' };
  const { stdout } = await execute(parameters.command, wrkArgs(address, { ...parameters, seconds }), options);
  return readReport(stdout);
}
