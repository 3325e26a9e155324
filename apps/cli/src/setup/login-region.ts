// The region that a computer uses after `tunnel login`, and the changes of config.yml to connect to the region.
import { isLoopbackHost, parseServerAddress } from '@tunnel/client';
import type { UsageRegion } from '@tunnel/contract';
import type { ConfigChanges } from '../config/keys.ts';
import { misuse, oneLine } from '../io/problem-report.ts';

/** Maximum regions of a platform offered by `tunnel login`. Of more regions, the first by id are offered. */
const REGIONS_MAX = 1000;
/** Maximum length of a region's id, and of its displayed name. An edge does not accept a longer id. */
const REGION_TEXT_MAX_CHARS = 100;

/**
 * Returns the regions reachable for a client on this computer, with an id that a person can type. An edge that listens only on its own
 * computer is left out, unless the platform runs on this computer.
 */
export const reachableRegions = (regions: readonly UsageRegion[], isPlatformHere: boolean): UsageRegion[] =>
  regions
    .filter(({ region_id, control }) => isNameable(region_id) && isAddress(control))
    .filter(({ control }) => isPlatformHere || !isLoopbackHost(parseServerAddress(control).host))
    .toSorted((a, b) => (a.region_id < b.region_id ? -1 : 1))
    .slice(0, REGIONS_MAX);

/** Returns true if the id has the form of an edge's `region.id`. Checked because the id comes from the platform. */
const isNameable = (id: string): boolean => id !== '' && id.length <= REGION_TEXT_MAX_CHARS && oneLine(id) === id;

/** Maximum length of a DNS name. */
const HOST_MAX_CHARS = 253;

const isAddress = (text: string): boolean => {
  try {
    return parseServerAddress(text).host.length <= HOST_MAX_CHARS;
  } catch {
    return false;
  }
};

/** Returns the region selected by `--region`. Throws a Fault that lists the existing regions. */
export const regionNamed = (id: string, regions: readonly UsageRegion[]): UsageRegion => {
  const found = regions.find(({ region_id }) => region_id === id);
  if (found !== undefined) return found;
  const known = regions.map(({ region_id }) => region_id).join(', ');
  throw misuse(known === '' ? `no region '${id}': no edge is online.` : `no region '${id}'. Use ${known}.`);
};

/** Formats the regions for the question about the region to use. */
export const regionLines = (regions: readonly UsageRegion[]): string[] => {
  const width = Math.max(...regions.map(({ region_id }) => region_id.length));
  return regions.map(({ region_id, name, location }) => {
    const where = location === '' ? '' : ` (${location})`;
    // A name that differs from the id only in letter case is not shown.
    const title = name.toLowerCase() === region_id.toLowerCase() ? '' : name;
    const text = oneLine(`${title}${where}`).slice(0, REGION_TEXT_MAX_CHARS);
    return `  ${region_id.padEnd(width)}  ${text}`.trimEnd();
  });
};

/** TLS settings of the config file, and the permissions given by the flags of this sign-in. */
export interface ServerTrust {
  readonly tls: boolean | undefined;
  readonly insecure: boolean;
  /** True if the user has passed --no-tls to allow unencrypted connections. */
  readonly clearTextAllowed: boolean;
  readonly caFile: string | undefined;
  readonly isInsecureAllowed: boolean;
}

export interface ServerSettings {
  readonly changes: ConfigChanges;
  /** True if the edge does not use TLS, and the user has not allowed an unencrypted API key. */
  readonly isClearTextRefused: boolean;
}

/**
 * Returns the config changes for the server and its TLS settings. Both change together, so that no permission for another server is left
 * over. An API key is sent unencrypted to another computer only with the user's permission, whatever the platform reports.
 */
export const serverSettings = ({ control, control_tls }: UsageRegion, trust: ServerTrust): ServerSettings => {
  const { host, text: server } = parseServerAddress(control);
  const isTlsUsual = !isLoopbackHost(host);
  const isClearTextRefused = isTlsUsual && !control_tls && !trust.clearTextAllowed;
  const tls = isClearTextRefused || control_tls === isTlsUsual ? undefined : control_tls;
  return {
    changes: {
      server,
      ...(tls === trust.tls ? {} : { tls }),
      ...(trust.caFile === undefined ? {} : { ca_file: trust.caFile }),
      ...(trust.isInsecureAllowed === trust.insecure ? {} : { insecure: trust.isInsecureAllowed }),
    },
    isClearTextRefused,
  };
};

/**
 * Returns true if a server in config.yml may belong to one of the regions. Hosts are compared without the port, because an edge can be
 * reached on several ports. All names of this computer count as one host, where two edges may run, so that the port is compared as well.
 */
export const isServerOf = (server: string, regions: readonly UsageRegion[]): boolean => {
  const endpointOf = (text: string): string => {
    const { host, port } = parseServerAddress(text);
    return isLoopbackHost(host) ? `this machine:${port}` : host.toLowerCase();
  };
  return isAddress(server) && regions.some(({ control }) => endpointOf(control) === endpointOf(server));
};
