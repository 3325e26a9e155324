// Rules of the health check: which URLs of a running server must respond, and the verdict about the responses. Pure functions.

export interface Probe {
  readonly part: 'edge' | 'platform';
  readonly url: string;
}

export interface ProbeResult extends Probe {
  /** Reason why the part is unhealthy. Null for a healthy part. */
  readonly problem: string | null;
}

/** URLs of the parts, as in run.json. A URL is null if the server does not run the part. */
interface PartUrls {
  readonly platform_url: string | null;
  readonly api_url: string | null;
}

/** Returns the probes for the parts of a running server. No probe queries the database: a database outage must not restart the parts. */
export const probesOf = ({ platform_url, api_url }: PartUrls): Probe[] => [
  ...(typeof platform_url !== 'string' ? [] : [{ part: 'platform' as const, url: `${platform_url}/health` }]),
  ...(typeof api_url !== 'string' ? [] : [{ part: 'edge' as const, url: `${api_url}/api/status` }]),
];

export interface HealthVerdict {
  readonly isHealthy: boolean;
  /** A single line: `ok`, or the unhealthy parts with reasons. */
  readonly line: string;
}

/** A server without any part to check, such as a payment simulator, is not healthy: the check would otherwise pass without a check. */
export const healthVerdict = (results: readonly ProbeResult[]): HealthVerdict => {
  if (results.length === 0) return { isHealthy: false, line: 'the server runs neither an edge nor a platform' };
  const bad = results.flatMap(({ part, url, problem }) => (problem === null ? [] : [`${part}: ${problem} (${url})`]));
  return bad.length === 0 ? { isHealthy: true, line: 'ok' } : { isHealthy: false, line: bad.join('; ') };
};
