// Pools in lines for people: one block each, a line for each member.
import type { GroupMemberSummary, GroupSummary } from '@tunnel/contract';
import { oneLine } from '../problem-report.ts';
import type { Colours } from './colours.ts';
import { columns, counted, momentText } from './columns.ts';
import { bytesText } from './words.ts';

/** Marks of a bar: one for each member, or shares of them in a larger pool. */
const BAR_MARKS = 20;
const HEALTHY = '●';
const UNHEALTHY = '○';

export const poolLines = (groups: readonly GroupSummary[], colours: Colours): string[] => {
  if (groups.length === 0) return NO_POOLS;
  return groups.flatMap((group, index) => [...(index === 0 ? [] : ['']), ...blockOf(group, colours)]);
};

const NO_POOLS = [
  'no pools',
  '  Start a tunnel with --group <name> --group-key-file <file>, or `group` and `group_key` in config.yml; again elsewhere: they share one address.',
  '  The edge needs `[load_balancing] enabled = true`.',
];

const blockOf = (group: GroupSummary, colours: Colours): string[] => {
  const { name, protocol, label, healthy_count: healthy, member_count: members } = group;
  const notAll = healthy === 0 ? colours.red : colours.yellow;
  const state = healthy === members ? colours.green : notAll;
  const failures = group.total_health_failures;
  const head = [
    colours.bold(oneLine(name)),
    `${protocol} ${oneLine(label)}`,
    `${bar(healthy, members, colours)} ${state(`${healthy} of ${members} healthy`)}`,
    counted(group.total_dispatches, 'dispatch', 'dispatches'),
    ...(failures === 0 ? [] : [counted(failures, 'failure', 'failures')]),
  ];
  return [
    head.join('  '),
    ...columns(group.members.map(cellsOf)).map((line, at) => shade(line, group.members[at], colours)),
  ];
};

/** Of a pool too large for a mark each, whatever there is of either kind keeps at least one. */
const bar = (healthy: number, members: number, colours: Colours): string => {
  const marks = Math.min(members, BAR_MARKS);
  const share = members === 0 ? 0 : Math.round((healthy / members) * marks);
  const least = healthy > 0 ? 1 : 0;
  const most = healthy < members ? marks - 1 : marks;
  const full = Math.max(least, Math.min(most, share));
  return colours.green(HEALTHY.repeat(full)) + colours.red(UNHEALTHY.repeat(marks - full));
};

const cellsOf = (member: GroupMemberSummary): string[] => [
  oneLine(member.tunnel_id),
  oneLine(member.client_addr),
  healthText(member),
  counted(member.request_count, 'request', 'requests'),
  bytesText(member.bytes_proxied),
  `since ${momentText(member.connected_since)}`,
];

const healthText = ({
  healthy,
  health_check_kind: kind,
  consecutive_failures: failures,
}: GroupMemberSummary): string => {
  if (healthy) return kind === undefined ? 'no probe' : 'healthy';
  return failures === 0 ? 'not healthy yet' : `unhealthy, ${counted(failures, 'failure', 'failures')}`;
};

const shade = (line: string, member: GroupMemberSummary | undefined, colours: Colours): string =>
  member?.healthy === true ? colours.dim(line) : colours.red(line);
