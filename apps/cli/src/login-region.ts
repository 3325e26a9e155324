// Which region a computer uses after `tunnel login`, and what config.yml says about the way there.
import { isLoopback, parseServerAddress } from '@tunnel/client';
import type { UsageRegion } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ConfigChanges } from './config-keys.ts';
import { oneLine } from './problem-report.ts';

/** Those that a client on this computer can come to. An edge that listens on its own machine alone is one only there. */
export const reachableRegions = (regions: readonly UsageRegion[], isPlatformHere: boolean): UsageRegion[] =>
  regions
    .filter(({ control }) => isAddress(control) && (isPlatformHere || !isLoopback(parseServerAddress(control).host)))
    .toSorted((a, b) => (a.region_id < b.region_id ? -1 : 1));

const isAddress = (text: string): boolean => {
  try {
    return parseServerAddress(text).host !== '';
  } catch {
    return false;
  }
};

/** `--region`. Throws a Fault that names those there are. */
export const regionNamed = (id: string, regions: readonly UsageRegion[]): UsageRegion => {
  const found = regions.find(({ region_id }) => region_id === id);
  if (found !== undefined) return found;
  const known = regions.map(({ region_id }) => oneLine(region_id)).join(', ');
  throw new Fault('CLIENT_USAGE', {
    reason: known === '' ? `No region '${id}': no edge is online.` : `No region '${id}'. Use ${known}.`,
  });
};

/** For whoever is asked which one. */
export const regionLines = (regions: readonly UsageRegion[]): string[] => {
  const width = Math.max(...regions.map(({ region_id }) => region_id.length));
  return regions.map(({ region_id, name, location }) => {
    const where = location === '' ? '' : ` (${location})`;
    return `  ${oneLine(region_id).padEnd(width)}  ${oneLine(`${name}${where}`)}`;
  });
};

/** What the file says now, and what was allowed at this login. */
export interface ServerTrust {
  readonly tls: boolean | undefined;
  readonly insecure: boolean;
  /** --no-tls. */
  readonly clearTextAllowed: boolean;
  readonly caFile: string | undefined;
  readonly isInsecureAllowed: boolean;
}

export interface ServerSettings {
  readonly changes: ConfigChanges;
  /** The edge takes no TLS, and nobody allowed to send the key in clear. */
  readonly isClearTextRefused: boolean;
}

/**
 * The server and how it is trusted, as one: nothing that was allowed for another server is left over. A key goes to another machine in clear
 * only when the person said so, whatever the platform tells.
 */
export const serverSettings = ({ control, control_tls }: UsageRegion, trust: ServerTrust): ServerSettings => {
  const isTlsUsual = !isLoopback(parseServerAddress(control).host);
  const isClearTextRefused = isTlsUsual && !control_tls && !trust.clearTextAllowed;
  const tls = isClearTextRefused || control_tls === isTlsUsual ? undefined : control_tls;
  return {
    changes: {
      server: control,
      ...(tls === trust.tls ? {} : { tls }),
      ...(trust.caFile === undefined ? {} : { ca_file: trust.caFile }),
      ...(trust.isInsecureAllowed === trust.insecure ? {} : { insecure: trust.isInsecureAllowed }),
    },
    isClearTextRefused,
  };
};

/** Whether a server of config.yml may be one of these: by its host, as an edge may be reached by several ports. */
export const isServerOf = (server: string, regions: readonly UsageRegion[]): boolean => {
  const hostOf = (text: string): string => parseServerAddress(text).host.toLowerCase();
  return isAddress(server) && regions.some(({ control }) => hostOf(control) === hostOf(server));
};
