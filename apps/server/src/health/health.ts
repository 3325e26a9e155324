// Health check of a running server: finds the parts by run.json and requests the status page of each part.
import { accessSync, constants } from 'node:fs';
import { request as requestClear } from 'node:http';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { isLoopbackHost } from '@tunnel/rules/net';
import { readRunFile } from '../data-dir/data-dir.ts';
import { type HealthVerdict, healthVerdict, type Probe, type ProbeResult, probesOf } from './health.rules.ts';

export interface HealthOptions {
  readonly dataDir: string;
  /** Host names in the certificates of the parts, for parts with TLS. */
  readonly hosts: Readonly<Record<Probe['part'], string>>;
  /** Time limit for all parts together. */
  readonly timeoutMs: number;
}

/** Checks every part that the server of a data directory runs. Throws a fault if no server is running. */
export const checkHealth = async ({ dataDir, hosts, timeoutMs }: HealthOptions): Promise<HealthVerdict> => {
  if (isForbidden(dataDir)) {
    const line = `cannot read ${join(dataDir, 'run.json')}: permission denied; run the command as the server's user`;
    return { isHealthy: false, line };
  }
  const run = readRunFile(dataDir);
  if (run === null) throw new Fault('SERVER_NOT_RUNNING', { dir: dataDir });
  const check = async (probe: Probe): Promise<ProbeResult> => ({
    ...probe,
    problem: await problemOf(probe.url, hosts[probe.part], timeoutMs),
  });
  return healthVerdict(await Promise.all(probesOf(run).map(check)));
};

/** Whether the data directory belongs to a different user. A missing directory is not forbidden: no server is running there. */
const isForbidden = (dataDir: string): boolean => {
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
};

/** Requests a status page. Resolves with the problem, or with null if the page responds with status 200. */
const problemOf = (url: string, servername: string, timeoutMs: number): Promise<string | null> =>
  new Promise((resolve) => {
    const { protocol, hostname } = new URL(url);
    // The signal limits the whole exchange. A socket timeout would restart with every byte.
    const given = { agent: false, signal: AbortSignal.timeout(timeoutMs) };
    // On this machine, a certificate for a different name is accepted, because the server itself wrote the address to run.json.
    const tls = { servername, rejectUnauthorized: !isLoopbackHost(hostname.replace(/^\[|\]$/g, '')) };
    const call = protocol === 'https:' ? requestTls(url, { ...given, ...tls }) : requestClear(url, given);
    call.on('response', (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? null : `status ${response.statusCode}`);
      call.destroy();
    });
    call.on('error', (error: NodeJS.ErrnoException) => {
      const isLate = error.name === 'AbortError' || error.name === 'TimeoutError';
      resolve(isLate ? `no response within ${timeoutMs / 1000} s` : (error.code ?? error.message));
    });
    call.end();
  });
