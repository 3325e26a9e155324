// How the traffic of a pool is spread over its members.
import type { GroupMemberSummary, GroupProtocol } from '@tunnel/contract';
import { countText, percentText } from '../../ui/format.ts';

/** Of what the members that are there have served, in their order; zeros while nothing was served. */
export const sharesOf = (members: readonly Pick<GroupMemberSummary, 'request_count'>[]): number[] => {
  const sum = members.reduce((total, { request_count }) => total + request_count, 0);
  return members.map(({ request_count }) => (sum === 0 ? 0 : request_count / sum));
};

/** What a member counts: "12 requests"; every connection of a tcp tunnel is one dispatch. */
export const servedText = (count: number, protocol: GroupProtocol): string => {
  const [one, many] = protocol === 'tcp' ? ['connection', 'connections'] : ['request', 'requests'];
  return `${countText(count)} ${count === 1 ? one : many}`;
};

export const shareText = (share: number, count: number, protocol: GroupProtocol): string =>
  `${percentText(share)} of what the pool has served: ${servedText(count, protocol)}`;
