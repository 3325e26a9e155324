// The load-balanced pools that hold a living tunnel of the caller, of all regions.
import type { PlatformPools } from '@tunnel/contract';
import type { UserActor } from '../service-context.ts';

/** The edges of all regions; one that does not answer is a warning. */
export interface GroupEdges {
  groups(accountId: string): Promise<PlatformPools>;
}

export const listGroups = async ({ edges }: { edges: GroupEdges }, { userId }: UserActor): Promise<PlatformPools> => {
  const { groups, warnings } = await edges.groups(userId);
  const inOrder = groups.toSorted(
    (a, b) => compare(a.region_id, b.region_id) || compare(a.protocol, b.protocol) || compare(a.label, b.label),
  );
  return { groups: inOrder, warnings: warnings.toSorted() };
};

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);
