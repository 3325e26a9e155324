// Reserved names and ports of an account as lines for people.
import type { Reservation } from '@tunnel/contract';
import { oneLine } from '../io/problem-report.ts';
import { type Colours, columns, counted, momentText } from './text.ts';

/** Returns a reservation's name as typed in a command, such as `shop` or `tcp/20042`. */
export const nameOf = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain' ? label : `${kind}/${label}`;

/** Returns the public address of a reservation, or its name while no edge has reported the address. */
export const addressOf = (one: Reservation): string => oneLine(one.public_address) || oneLine(nameOf(one));

const ORDER = ['reserved', 'held', 'released'];

interface ReservationsShown {
  /** Maximum number of reserved names. Null without a maximum. */
  readonly limit: number | null;
  /** True to list names chosen by the edge, false to only count such names. */
  readonly isWhole: boolean;
}

/** Lists the reservations of an account. Names chosen by the edge can be numerous, because a name used for a day is held for weeks. */
export const reservationLines = (
  all: readonly Reservation[],
  { limit, isWhole }: ReservationsShown,
  colours: Colours,
): string[] => {
  const shown = isWhole ? all : all.filter(({ assigned }) => assigned !== true);
  const folded = all.length - shown.length;
  const list = shown.toSorted((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
  const foldedLine = folded === 0 ? [] : [`${counted(folded, 'random name', 'random names')} not shown (use --all)`];
  if (list.length === 0) return ['no reservations', ...foldedLine, '  Reserve a name: tunnel reserve shop'];
  const lines = columns(list.map(cellsOf)).map((line) => line.replace(/^ {2}/, ''));
  const reserved = list.filter(({ state }) => state === 'reserved').length;
  const held = list.find(({ state, assigned }) => state === 'held' && assigned !== true);
  return [
    ...lines.map((line, at) => (list[at]?.state === 'reserved' ? line : colours.dim(line))),
    ...foldedLine,
    ...(limit === null ? [] : [`${reserved} of ${limit} reserved`]),
    ...(held === undefined ? [] : [`  To reserve permanently: ${reserveCommand(held)}`]),
  ];
};

const cellsOf = (one: Reservation): string[] => [
  oneLine(nameOf(one)),
  one.state,
  oneLine(one.public_address),
  useText(one),
  one.expires_at === null ? '' : `yours until ${momentText(one.expires_at)}`,
  oneLine(one.region_id ?? ''),
];

const useText = ({ active_tunnels: active, last_used_at: used }: Reservation): string => {
  if (active > 0) return `in use by ${counted(active, 'tunnel', 'tunnels')}`;
  return used === null ? 'never used' : `used ${momentText(used)}`;
};

const reserveCommand = ({ kind, label, region_id: region }: Reservation): string => {
  if (kind === 'subdomain') return `tunnel reserve ${oneLine(label)}`;
  return oneLine(`tunnel reserve --${kind} ${label}${region === null ? '' : ` --region ${region}`}`);
};

/** Describes a new reservation, with a command that uses the reservation. */
export const reservedLines = (made: Reservation): string[] => [
  `Reserved ${addressOf(made)}`,
  `  Use it: ${USES[made.kind](oneLine(made.label))}`,
];

const USES: Readonly<Record<Reservation['kind'], (label: string) => string>> = {
  subdomain: (label) => `tunnel http 3000 --subdomain ${label.startsWith('*') ? `'${label}'` : label}`,
  tcp: (label) => `tunnel tcp 22 --remote-port ${label}`,
  udp: (label) => `tunnel udp 53 --remote-port ${label}`,
};

/** Describes a release. `left` is the current entry of the released name in the list, or undefined if the list no longer has the name. */
export const releasedLine = (released: Reservation, left: Reservation | undefined): string => {
  const done = `Released ${oneLine(nameOf(released))}.`;
  if (left === undefined) return done;
  if (left.expires_at === null) return `${done} The name stays yours until its open tunnels close${afterwards(left)}.`;
  return `${done} You can take it back until ${momentText(left.expires_at)}: ${reserveCommand(left)}`;
};

const DAY_SECS = 86_400;

/** Describes the time for which a released name stays with its account. Empty for older platforms, which do not report the time. */
const afterwards = ({ grace_seconds: seconds }: Reservation): string => {
  if (seconds === undefined || seconds === 0) return '';
  const [count, unit] = seconds % DAY_SECS === 0 ? [seconds / DAY_SECS, 'day'] : [Math.ceil(seconds / 3600), 'hour'];
  return `, and ${count} ${unit}${count === 1 ? '' : 's'} after`;
};
