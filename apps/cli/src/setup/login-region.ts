// Which region a computer uses after `tunnel login`, and what config.yml says about the way there.
import { isLoopbackHost, parseServerAddress } from '@tunnel/client';
import type { UsageRegion } from '@tunnel/contract';
import type { ConfigChanges } from '../config/keys.ts';
import { misuse, oneLine } from '../io/problem-report.ts';

/** regions of a platform that `tunnel login` offers; of more the first by id */
const REGIONS_MAX = 1000;
/** an id of a region, and its name as it is shown: an edge takes no longer id */
const REGION_TEXT_MAX_CHARS = 100;

/** Those that a client on this computer can come to, and a person can name. An edge that listens on its own machine alone is one only there. */
export const reachableRegions = (regions: readonly UsageRegion[], isPlatformHere: boolean): UsageRegion[] =>
  regions
    .filter(({ region_id, control }) => isNameable(region_id) && isAddress(control))
    .filter(({ control }) => isPlatformHere || !isLoopbackHost(parseServerAddress(control).host))
    .toSorted((a, b) => (a.region_id < b.region_id ? -1 : 1))
    .slice(0, REGIONS_MAX);

/** As an edge's `region.id` may be; the platform says it, so it is looked at here. */
const isNameable = (id: string): boolean => id !== '' && id.length <= REGION_TEXT_MAX_CHARS && oneLine(id) === id;

/** The longest name that DNS has. */
const HOST_MAX_CHARS = 253;

const isAddress = (text: string): boolean => {
  try {
    return parseServerAddress(text).host.length <= HOST_MAX_CHARS;
  } catch {
    return false;
  }
};

/** `--region`. Throws a Fault that names those there are. */
export const regionNamed = (id: string, regions: readonly UsageRegion[]): UsageRegion => {
  const found = regions.find(({ region_id }) => region_id === id);
  if (found !== undefined) return found;
  const known = regions.map(({ region_id }) => region_id).join(', ');
  throw misuse(known === '' ? `no region '${id}': no edge is online.` : `no region '${id}'. Use ${known}.`);
};

/** For whoever is asked which one. */
export const regionLines = (regions: readonly UsageRegion[]): string[] => {
  const width = Math.max(...regions.map(({ region_id }) => region_id.length));
  return regions.map(({ region_id, name, location }) => {
    const where = location === '' ? '' : ` (${location})`;
    // A name that differs from the id in its case alone says nothing.
    const title = name.toLowerCase() === region_id.toLowerCase() ? '' : name;
    const text = oneLine(`${title}${where}`).slice(0, REGION_TEXT_MAX_CHARS);
    return `  ${region_id.padEnd(width)}  ${text}`.trimEnd();
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
 * Whether a server of config.yml may be one of these: by its host, as an edge may be reached by several ports. This machine is one host by
 * all its names, and may well run two edges: there the port counts.
 */
export const isServerOf = (server: string, regions: readonly UsageRegion[]): boolean => {
  const endpointOf = (text: string): string => {
    const { host, port } = parseServerAddress(text);
    return isLoopbackHost(host) ? `this machine:${port}` : host.toLowerCase();
  };
  return isAddress(server) && regions.some(({ control }) => endpointOf(control) === endpointOf(server));
};
