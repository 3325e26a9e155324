// The caller's load-balanced pools in the platform API, gathered from all regions.
import * as z from 'zod';
import { groupSummaries } from './groups.ts';

export const platformPools = z
  .object({
    groups: groupSummaries,
    warnings: z.array(z.string()).meta({
      description: 'Regions that did not answer, by name; their groups are missing.',
      examples: [[]],
    }),
  })
  .meta({ id: 'LoadBalancingGroups' });
export type PlatformPools = z.infer<typeof platformPools>;
