// Query and pure functions for the account's groups: refreshed every two seconds, sorted in a stable order, filtered, with each member's
// share of the traffic.
import { queryOptions, replaceEqualDeep } from '@tanstack/react-query';
import type {
  GroupMemberSummary,
  GroupProtocol,
  GroupSummary,
  PlatformClient,
  PlatformPools,
  UsageRegion,
} from '@tunnel/contract';
import { LIVE_MS } from '../../api/queries.ts';
import { publicAddress } from '../../shared/client-commands.ts';
import { addressOf, type TunnelAddress } from '../../shared/tunnel-address.ts';
import { percentText, plural } from '../../ui/format.ts';

export interface PoolsSnapshot {
  readonly groups: readonly GroupSummary[];
  /** Warnings of the API, such as regions that did not respond. */
  readonly warnings: readonly string[];
  /** Regions with outdated groups from an earlier response, and the time of that response in ms since the epoch. */
  readonly staleSince: Readonly<Record<string, number>>;
  /** Time of the response in ms since the epoch, rounded down to a full second to avoid needless changes of the snapshot. */
  readonly at: number;
}

const AT_STEP_MS = 1000;

export const readPools = ({ groups, warnings }: PlatformPools, now: number): PoolsSnapshot => ({
  groups: groups.map(inOrder).sort(byName),
  warnings,
  staleSince: {},
  at: Math.floor(now / AT_STEP_MS) * AT_STEP_MS,
});

/**
 * Merges a new response with the previous snapshot. If a region did not respond, its previous groups are kept, with the time of the
 * earlier response.
 */
export const mergePools = (before: PoolsSnapshot | undefined, now: PoolsSnapshot): PoolsSnapshot => {
  const silent = silentRegions(now.warnings);
  if (before === undefined || silent.size === 0) return now;
  const known = new Set(now.groups.map(poolKey));
  const kept = before.groups.filter((group) => silent.has(group.region_id) && !known.has(poolKey(group)));
  if (kept.length === 0) return now;
  const regions = [...new Set(kept.map(({ region_id }) => region_id))].sort();
  return {
    ...now,
    groups: [...now.groups, ...kept].sort(byName),
    staleSince: Object.fromEntries(regions.map((region) => [region, before.staleSince[region] ?? before.at])),
  };
};

const WARNING = /^region (\S+) did not answer/;

/** Returns the regions named in the API's warnings as not responding. */
export const silentRegions = (warnings: readonly string[]): Set<string> =>
  new Set(
    warnings.flatMap((warning) => {
      const region = WARNING.exec(warning)?.[1];
      return region === undefined ? [] : [region];
    }),
  );

/** Returns a key that identifies a group across responses. */
export const poolKey = ({ region_id, protocol, label, name, key_hash_short }: GroupSummary): string =>
  JSON.stringify([region_id, protocol, label, name, key_hash_short]);

const byName = (a: GroupSummary, b: GroupSummary): number => {
  const order = compare(a.name, b.name) || compare(a.label, b.label);
  return order || compare(poolKey(a), poolKey(b));
};

/** Sorts members by the start of the connection. The API lists a resumed member last; sorting keeps the member in place. */
const inOrder = (group: GroupSummary): GroupSummary => ({
  ...group,
  members: [...group.members].sort(
    (a, b) => compare(a.connected_since, b.connected_since) || compare(a.tunnel_id, b.tunnel_id),
  ),
});

/** Compares strings by code units. Locale comparison would be too slow for thousands of IDs every two seconds. */
const compare = (a: string, b: string): number => {
  if (a === b) return 0;
  return a < b ? -1 : 1;
};

const POOLS_KEY = ['pools'] as const;

/** Query for the account's groups, refreshed every two seconds while the page is visible. */
export const poolsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: POOLS_KEY,
    queryFn: async () => readPools(await api.pools(), Date.now()),
    // Unchanged data stays the same object, so that its components do not render again.
    structuralSharing: (before, now) =>
      replaceEqualDeep(before, mergePools(before as PoolsSnapshot | undefined, now as PoolsSnapshot)),
    refetchInterval: LIVE_MS.pools,
    staleTime: 0,
  });

export type PoolFilter = 'all' | 'trouble';

export const isDown = ({ healthy_count }: Pick<GroupSummary, 'healthy_count'>): boolean => healthy_count === 0;

export const hasTrouble = ({ unhealthy_count }: Pick<GroupSummary, 'unhealthy_count'>): boolean => unhealthy_count > 0;

/** Filters groups by text and health. Every word of the text must occur in the group or in one of its members. */
export const filterPools = (groups: readonly GroupSummary[], text: string, shown: PoolFilter): GroupSummary[] => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return groups.filter(
    (group) => (shown === 'all' || hasTrouble(group)) && words.every((word) => mentions(group, word)),
  );
};

const mentions = (group: GroupSummary, word: string): boolean => {
  const { name, label, protocol, region_id, key_hash_short, members } = group;
  const has = (value: string): boolean => value.toLowerCase().includes(word);
  return (
    [name, label, protocol, region_id, key_hash_short].some(has) ||
    members.some(({ tunnel_id, client_addr, name: tunnel = '', client_name = '', public_url = '' }) =>
      [tunnel_id, client_addr, tunnel, client_name, public_url].some(has),
    )
  );
};

/**
 * Returns the public address of a group as reported by its members. Older edges do not report the address; then the address is derived
 * from the region's URL. Null if unknown.
 */
export const poolAddress = (group: GroupSummary, region: UsageRegion | undefined): TunnelAddress | null => {
  const { protocol, label, members } = group;
  const url = members.find(({ public_url }) => public_url !== undefined)?.public_url;
  if (url !== undefined) return addressOf({ protocol, label, public_url: url, tunnel_id: label });
  const text = publicAddress(group, region);
  return text === null ? null : { text, href: protocol === 'http' ? text : null };
};

const ALERT_TEXTS = {
  delivered: 'alert delivered',
  failed: 'alert not delivered',
  refused: 'alert address not allowed',
  dropped: 'alert dropped: too many alerts',
} as const;

/** Returns the outcome of the last alert sent to a member's webhook. */
export const alertText = (last: GroupMemberSummary['last_alert']): string =>
  last === undefined ? 'with alert' : ALERT_TEXTS[last.outcome];

/** Returns the reason why a member is unhealthy, as in "3 failures in a row: status 500". */
export const failureText = ({ consecutive_failures: failures, last_failure_reason: reason }: GroupMemberSummary) => {
  if (failures === 0) return 'no health check has passed yet';
  return `${plural(failures, 'failure')} in a row${reason === undefined ? '' : `: ${reason}`}`;
};

/** Returns each member's share of the requests served by the current members, in their order. All zeros if no requests were served. */
export const sharesOf = (members: readonly Pick<GroupMemberSummary, 'request_count'>[]): number[] => {
  const sum = members.reduce((total, { request_count }) => total + request_count, 0);
  return members.map(({ request_count }) => (sum === 0 ? 0 : request_count / sum));
};

/** Returns the number of served requests in words, as in "12 requests". TCP tunnels count connections instead. */
export const servedText = (count: number, protocol: GroupProtocol): string =>
  plural(count, protocol === 'tcp' ? 'connection' : 'request');

export const shareText = (share: number, count: number, protocol: GroupProtocol): string =>
  `${percentText(share)} of the group's traffic: ${servedText(count, protocol)}`;
