// The groups of several edges as one list. A region may have several edges: what is one group to its owner is shown as one.
import type { GroupSummary } from '@tunnel/contract';

export const mergeGroups = (groups: readonly GroupSummary[]): GroupSummary[] => {
  const merged = new Map<string, GroupSummary>();
  for (const group of groups) {
    const key = JSON.stringify([group.region_id, group.protocol, group.label, group.name, group.key_hash_short]);
    const known = merged.get(key);
    merged.set(key, known === undefined ? group : joined(known, group));
  }
  return [...merged.values()];
};

const joined = (a: GroupSummary, b: GroupSummary): GroupSummary => ({
  ...a,
  member_count: a.member_count + b.member_count,
  healthy_count: a.healthy_count + b.healthy_count,
  unhealthy_count: a.unhealthy_count + b.unhealthy_count,
  total_dispatches: a.total_dispatches + b.total_dispatches,
  total_health_failures: a.total_health_failures + b.total_health_failures,
  members: [...a.members, ...b.members],
});
