// Finds, calls and parses wrk, the load generator for HTTP scenarios.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const REPORT = fileURLToPath(new URL('../load/wrk-report.lua', import.meta.url));

/** The tunnel's subdomain at the edge. Other paths ignore the name. */
export const HTTP_NAME = 'bench';
export const HTTP_HOST = `${HTTP_NAME}.localhost`;
/** The host of a tunnel where a scenario has many, as wrk-report.lua has it. */
export const hostOf = (number) => `t${number}.localhost`;

/** Finds wrk. `missing` is the message if wrk is not installed. */
export function findWrk() {
  // wrk has no option to print its version that exits with 0, but its first output names the version.
  const { error, stdout, stderr } = spawnSync('wrk', ['--version'], { encoding: 'utf8' });
  if (error) return { missing: 'wrk is not installed (Debian: apt install wrk): no HTTP scenarios' };
  return { command: 'wrk', version: /^wrk (\S+)/.exec(stdout + stderr)?.[1] ?? 'unknown' };
}

/** Returns the arguments for wrk. A single thread can request more than two hops on the same machine can answer. */
export const wrkArgs = (
  { host, port, tls },
  { connections, bytes, keepAlive, seconds, path = `/0/${bytes}`, headers = [], body, names, name = HTTP_HOST },
) => [
  ...['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--script', REPORT],
  // The platform answers only requests to its own address, so its Host header stays unchanged.
  ...(name === null ? [] : ['--header', `Host: ${name}`]),
  ...(keepAlive ? [] : ['--header', 'Connection: close']),
  ...headers.flatMap((header) => ['--header', header]),
  `${tls ? 'https' : 'http'}://${host}:${port}${path}`,
  ...(body === undefined ? [] : ['--', 'body', body]),
  ...(names === undefined ? [] : ['--', 'names', String(names)]),
];

export function readReport(stdout) {
  const text = /^report (.*)$/m.exec(stdout)?.[1];
  if (text === undefined) throw new Error(`wrk said nothing that can be read: ${stdout.slice(-500)}`);
  const { requests, bytes, durationUs, p50Us, p99Us, errors } = JSON.parse(text);
  const seen = Object.entries(errors).filter(([, count]) => count > 0);
  if (seen.length > 0) {
    throw new Error(`wrk saw errors: ${seen.map(([kind, count]) => `${count} of ${kind}`).join(', ')}`);
  }
  if (requests === 0) throw new Error('wrk got no answer');
  return { requests, bytes, seconds: durationUs / 1e6, p50Ms: p50Us / 1000, p99Ms: p99Us / 1000 };
}
