// The pools of the account as values: asked for every two seconds, in an order that stays; filtered; and how their traffic is spread.
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
  /** The API's own words. */
  readonly warnings: readonly string[];
  /** Regions whose pools are those of an earlier answer, and when that came: ms since the epoch. */
  readonly staleSince: Readonly<Record<string, number>>;
  /** When the answer came. Rounded, so that nothing changes when nothing else does. */
  readonly at: number;
}

const AT_STEP_MS = 1000;

export const readPools = ({ groups, warnings }: PlatformPools, now: number): PoolsSnapshot => ({
  groups: groups.map(inOrder).sort(byName),
  warnings,
  staleSince: {},
  at: Math.floor(now / AT_STEP_MS) * AT_STEP_MS,
});

/** A region that does not answer once takes nothing away: its pools stay as they were, with their age. */
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

/** Those that the warnings name. */
export const silentRegions = (warnings: readonly string[]): Set<string> =>
  new Set(
    warnings.flatMap((warning) => {
      const region = WARNING.exec(warning)?.[1];
      return region === undefined ? [] : [region];
    }),
  );

/** The same pool has the same key in every answer. */
export const poolKey = ({ region_id, protocol, label, name, key_hash_short }: GroupSummary): string =>
  JSON.stringify([region_id, protocol, label, name, key_hash_short]);

const byName = (a: GroupSummary, b: GroupSummary): number => {
  const order = compare(a.name, b.name) || compare(a.label, b.label);
  return order || compare(poolKey(a), poolKey(b));
};

/** A member whose connection was resumed is last in the answer, but keeps its place here. */
const inOrder = (group: GroupSummary): GroupSummary => ({
  ...group,
  members: [...group.members].sort(
    (a, b) => compare(a.connected_since, b.connected_since) || compare(a.tunnel_id, b.tunnel_id),
  ),
});

/** Not by locale: thousands of ids are compared every two seconds. */
const compare = (a: string, b: string): number => {
  if (a === b) return 0;
  return a < b ? -1 : 1;
};

const POOLS_KEY = ['pools'] as const;

/** The pools of the account, asked for again every two seconds while the page is looked at. */
export const poolsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: POOLS_KEY,
    queryFn: async () => readPools(await api.pools(), Date.now()),
    // What did not change stays the same object, and is not drawn again.
    structuralSharing: (before, now) =>
      replaceEqualDeep(before, mergePools(before as PoolsSnapshot | undefined, now as PoolsSnapshot)),
    refetchInterval: LIVE_MS.pools,
    staleTime: 0,
  });

export type PoolFilter = 'all' | 'trouble';

export const isDown = ({ healthy_count }: Pick<GroupSummary, 'healthy_count'>): boolean => healthy_count === 0;

export const hasTrouble = ({ unhealthy_count }: Pick<GroupSummary, 'unhealthy_count'>): boolean => unhealthy_count > 0;

/** Every word must be found, each of them anywhere: in the pool, or in one of its members. */
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

/** Where visitors come to, as its members tell it; of an edge of before, as its region makes addresses. */
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

/** What became of the last alert to a member's webhook. */
export const alertText = (last: GroupMemberSummary['last_alert']): string =>
  last === undefined ? 'with alert' : ALERT_TEXTS[last.outcome];

/** Why a member is out: "3 failures in a row: status 500". */
export const failureText = ({ consecutive_failures: failures, last_failure_reason: reason }: GroupMemberSummary) => {
  if (failures === 0) return 'no health check has passed yet';
  return `${plural(failures, 'failure')} in a row${reason === undefined ? '' : `: ${reason}`}`;
};

/** Of what the members that are there have served, in their order; zeros while nothing was served. */
export const sharesOf = (members: readonly Pick<GroupMemberSummary, 'request_count'>[]): number[] => {
  const sum = members.reduce((total, { request_count }) => total + request_count, 0);
  return members.map(({ request_count }) => (sum === 0 ? 0 : request_count / sum));
};

/** What a member counts: "12 requests"; every connection of a tcp tunnel is one dispatch. */
export const servedText = (count: number, protocol: GroupProtocol): string =>
  plural(count, protocol === 'tcp' ? 'connection' : 'request');

export const shareText = (share: number, count: number, protocol: GroupProtocol): string =>
  `${percentText(share)} of the group's traffic: ${servedText(count, protocol)}`;
