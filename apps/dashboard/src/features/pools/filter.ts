// Which pools are shown: those that have the text somewhere, and, when asked so, those with trouble.
import type { GroupSummary } from '@tunnel/contract';

export type PoolsShown = 'all' | 'trouble';

export const isDown = ({ healthy_count }: Pick<GroupSummary, 'healthy_count'>): boolean => healthy_count === 0;

export const hasTrouble = ({ unhealthy_count }: Pick<GroupSummary, 'unhealthy_count'>): boolean => unhealthy_count > 0;

/** Every word must be found, each of them anywhere: in the pool, or in one of its members. */
export const filterPools = (groups: readonly GroupSummary[], text: string, shown: PoolsShown): GroupSummary[] => {
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
    members.some(({ tunnel_id, client_addr }) => has(tunnel_id) || has(client_addr))
  );
};
