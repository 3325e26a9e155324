// The names and ports of an account in lines for people.
import type { Reservation } from '@tunnel/contract';
import { oneLine } from '../io/problem-report.ts';
import { type Colours, columns, counted, momentText } from './text.ts';

/** As it is typed: `shop`, `tcp/20042`. */
export const nameOf = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain' ? label : `${kind}/${label}`;

/** Unknown while no edge was heard. */
export const addressOf = (one: Reservation): string => oneLine(one.public_address) || oneLine(nameOf(one));

const ORDER = ['reserved', 'held', 'released'];

interface ReservationsShown {
  /** null: as many reserved ones as one likes. */
  readonly limit: number | null;
  /** false: names that the edge chose are counted, not listed. */
  readonly isWhole: boolean;
}

/** What is used for a day is held for weeks, and there may be many of those. */
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

/** What was reserved, and how it is used. */
export const reservedLines = (made: Reservation): string[] => [
  `Reserved ${addressOf(made)}`,
  `  Use it: ${USES[made.kind](oneLine(made.label))}`,
];

const USES: Readonly<Record<Reservation['kind'], (label: string) => string>> = {
  subdomain: (label) => `tunnel http 3000 --subdomain ${label.startsWith('*') ? `'${label}'` : label}`,
  tcp: (label) => `tunnel tcp 22 --remote-port ${label}`,
  udp: (label) => `tunnel udp 53 --remote-port ${label}`,
};

/** `left`: what the list says of it now; undefined: it is gone. */
export const releasedLine = (released: Reservation, left: Reservation | undefined): string => {
  const done = `Released ${oneLine(nameOf(released))}.`;
  if (left === undefined) return done;
  if (left.expires_at === null) return `${done} The name stays yours until its open tunnels close${afterwards(left)}.`;
  return `${done} You can take it back until ${momentText(left.expires_at)}: ${reserveCommand(left)}`;
};

const DAY_SECS = 86_400;

/** How long a name stays its account's after its release; older platforms do not tell. */
const afterwards = ({ grace_seconds: seconds }: Reservation): string => {
  if (seconds === undefined || seconds === 0) return '';
  const [count, unit] = seconds % DAY_SECS === 0 ? [seconds / DAY_SECS, 'day'] : [Math.ceil(seconds / 3600), 'hour'];
  return `, and ${count} ${unit}${count === 1 ? '' : 's'} after`;
};
