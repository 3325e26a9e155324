// Output of `tunnel groups`: JSON, plain blocks with a line for each member, or a block on a terminal that is redrawn in place.
import type { GroupMemberSummary, GroupSummary } from '@tunnel/contract';
import type { Fault } from '@tunnel/errors';
import type { ReadGroups } from '../api/edge-api.ts';
import type { Io } from '../io/io.ts';
import { oneLine, problemLines } from '../io/problem-report.ts';
import { RedrawnLines } from './redrawn-lines.ts';
import { bytesText, type Colours, coloursOf, columns, counted, momentText } from './text.ts';

type Screen = Pick<Io, 'stdout' | 'stderr' | 'env'>;

export interface GroupOutput {
  show(read: ReadGroups): void;
  /** Called when the edge can no longer be reached. The command retries. */
  lost(fault: Fault): void;
  /** Called when the edge can be reached again. */
  back(): void;
}

export const chooseGroupOutput = (
  io: Screen,
  options: { readonly json: boolean; readonly watch: boolean },
): GroupOutput => {
  if (options.json) return new JsonGroups(io);
  return options.watch && io.stdout.isTTY === true ? new LiveGroups(io) : new PlainGroups(io);
};

const lostText = (fault: Fault): string => `${problemLines(fault)[0]}; retrying`;
const BACK = 'tunnel: the edge is reachable again';

/** Prints the list of groups as a line of JSON whenever the list has changed. */
class JsonGroups implements GroupOutput {
  readonly #io: Screen;
  #last = '';

  constructor(io: Screen) {
    this.#io = io;
  }

  show({ json }: ReadGroups): void {
    const text = JSON.stringify(json);
    if (text !== this.#last) this.#io.stdout.write(`${text}\n`);
    this.#last = text;
  }

  lost(fault: Fault): void {
    this.#io.stderr.write(`${lostText(fault)}\n`);
  }

  back(): void {
    this.#io.stderr.write(`${BACK}\n`);
  }
}

class PlainGroups implements GroupOutput {
  readonly #io: Screen;
  #last = '';

  constructor(io: Screen) {
    this.#io = io;
  }

  show({ groups }: ReadGroups): void {
    const text = groupLines(groups, coloursOf(this.#io)).join('\n');
    if (text !== this.#last) this.#io.stdout.write(`${this.#last === '' ? '' : '\n'}${text}\n`);
    this.#last = text;
  }

  lost(fault: Fault): void {
    this.#io.stderr.write(`${lostText(fault)}\n`);
  }

  back(): void {
    this.#io.stderr.write(`${BACK}\n`);
  }
}

class LiveGroups implements GroupOutput {
  readonly #io: Screen;
  readonly #block: RedrawnLines;

  constructor(io: Screen) {
    this.#io = io;
    this.#block = new RedrawnLines(io.stdout);
  }

  show({ groups }: ReadGroups): void {
    this.#block.draw(groupLines(groups, coloursOf(this.#io)));
  }

  /** Keeps the last known groups on the screen, below the error message. */
  lost(fault: Fault): void {
    this.#block.above(lostText(fault));
  }

  back(): void {
    this.#block.above(BACK);
  }
}

/** Maximum marks in the health bar of a group. A larger group has a mark for a share of its members. */
const BAR_MARKS = 20;
const HEALTHY = '●';
const UNHEALTHY = '○';

export const groupLines = (groups: readonly GroupSummary[], colours: Colours): string[] => {
  if (groups.length === 0) return NO_GROUPS;
  return groups.flatMap((group, index) => [...(index === 0 ? [] : ['']), ...blockOf(group, colours)]);
};

const NO_GROUPS = [
  'no groups',
  '  To share one address, start tunnels on two computers with the same --group and --group-key-file.',
  '  Create the key with `tunnel group-key`. Keys in config.yml: `group`, `group_key_file`.',
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
    counted(group.total_dispatches, 'connection', 'connections'),
    ...(failures === 0 ? [] : [counted(failures, 'failure', 'failures')]),
  ];
  return [head.join('  '), ...columns(memberRows(group)).map((line, at) => shade(line, group.members[at], colours))];
};

/** Draws the health bar of a group. If the group has more members than marks, healthy and unhealthy members keep at least one mark each. */
const bar = (healthy: number, members: number, colours: Colours): string => {
  const marks = Math.min(members, BAR_MARKS);
  const share = members === 0 ? 0 : Math.round((healthy / members) * marks);
  const least = healthy > 0 ? 1 : 0;
  const most = healthy < members ? marks - 1 : marks;
  const full = Math.max(least, Math.min(most, share));
  return colours.green(HEALTHY.repeat(full)) + colours.red(UNHEALTHY.repeat(marks - full));
};

const memberRows = ({ protocol, members }: GroupSummary): string[][] => {
  const seen = new Map<string, number>();
  for (const member of members) seen.set(computerOf(member), (seen.get(computerOf(member)) ?? 0) + 1);
  return members.map((member) => {
    const computer = computerOf(member);
    const isShared = (seen.get(computer) ?? 0) > 1 && computer !== member.client_addr;
    return [
      oneLine(isShared ? `${computer} (${member.client_addr})` : computer),
      oneLine(member.name ?? member.tunnel_id),
      healthText(member),
      protocol === 'http'
        ? counted(member.request_count, 'request', 'requests')
        : counted(member.request_count, 'connection', 'connections'),
      bytesText(member.bytes_proxied),
      `since ${momentText(member.connected_since)}`,
    ];
  });
};

/** Returns the name of a member's computer. An older client or edge does not report the name; the address is used instead. */
const computerOf = ({ client_name: name, client_addr: address }: GroupMemberSummary): string => name ?? address;

const healthText = ({
  healthy,
  health_check_kind: kind,
  consecutive_failures: failures,
}: GroupMemberSummary): string => {
  if (healthy) return kind === undefined ? 'no health check' : 'healthy';
  return failures === 0 ? 'not healthy yet' : `unhealthy, ${counted(failures, 'failure', 'failures')}`;
};

const shade = (line: string, member: GroupMemberSummary | undefined, colours: Colours): string =>
  member?.healthy === true ? colours.dim(line) : colours.red(line);
