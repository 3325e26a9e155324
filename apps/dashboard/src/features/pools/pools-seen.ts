// What is known of the pools: as the regions answered, in an order that stays. A region that does not answer once takes nothing away.
import type { GroupSummary, PlatformPools } from '@tunnel/contract';

export interface PoolsSeen {
  readonly groups: readonly GroupSummary[];
  /** The API's own words. */
  readonly warnings: readonly string[];
  /** Regions whose pools are those of an earlier answer, and when that came: ms since the epoch. */
  readonly oldSince: Readonly<Record<string, number>>;
  /** When the answer came. Rounded, so that nothing changes when nothing else does. */
  readonly at: number;
}

const AT_STEP_MS = 1000;

export const readPools = ({ groups, warnings }: PlatformPools, now: number): PoolsSeen => ({
  groups: groups.map(inOrder).sort(byName),
  warnings,
  oldSince: {},
  at: Math.floor(now / AT_STEP_MS) * AT_STEP_MS,
});

/** The pools of a region that has not answered this time stay as they were, with their age. */
export const followPools = (before: PoolsSeen | undefined, now: PoolsSeen): PoolsSeen => {
  const silent = silentRegions(now.warnings);
  if (before === undefined || silent.size === 0) return now;
  const known = new Set(now.groups.map(poolKey));
  const kept = before.groups.filter((group) => silent.has(group.region_id) && !known.has(poolKey(group)));
  if (kept.length === 0) return now;
  const regions = [...new Set(kept.map(({ region_id }) => region_id))].sort();
  return {
    ...now,
    groups: [...now.groups, ...kept].sort(byName),
    oldSince: Object.fromEntries(regions.map((region) => [region, before.oldSince[region] ?? before.at])),
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
