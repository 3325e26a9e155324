// The load-balanced pools that hold a living tunnel of the caller, of all regions.
import type { GroupSummary, PlatformPools } from '@tunnel/contract';
import type { UserActor } from '../service-context.ts';

/** The edges of all regions; one that does not answer is a warning. */
export interface GroupEdges {
  groups(accountId: string): Promise<PlatformPools>;
}

export const listGroups = async ({ edges }: { edges: GroupEdges }, { userId }: UserActor): Promise<PlatformPools> => {
  const { groups, warnings } = await edges.groups(userId);
  return {
    groups: groups.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)),
    warnings: warnings.toSorted(),
  };
};

/** One group has one place: none is equal to another. */
const placeOf = ({ region_id, protocol, label }: GroupSummary): string => [region_id, protocol, label].join('\0');
