// One tunnel in the list: a line of cells on a wide page, a small card on a phone.
import { Link } from '@tanstack/react-router';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { memo } from 'react';
import { Badge } from '../../ui/badge.tsx';
import { classNames } from '../../ui/class-names.ts';
import { plural } from '../../ui/format.ts';
import { useIsNarrow } from '../../ui/hooks.ts';
import { Bytes, Count, Duration, Time } from '../../ui/values.tsx';

/** The label needs its room: where there is little, region and duration are left to the page of the tunnel. */
const COLUMNS =
  'grid-cols-[5rem_4rem_minmax(0,1fr)_7rem_6rem_5.5rem] lg:grid-cols-[5.5rem_4rem_minmax(0,1fr)_6.5rem_7rem_7rem_6rem_5.5rem] items-center gap-x-4 px-5 md:grid';
const WITH_ROOM = 'max-lg:hidden';

export const TunnelState = ({ entry }: { readonly entry: Pick<TunnelLogEntry, 'unregistered_at'> }) =>
  entry.unregistered_at === null ? (
    <Badge tone="good" dot>
      Live
    </Badge>
  ) : (
    <Badge>Ended</Badge>
  );

/** The whole row can be pressed; it is one stop of the keyboard. */
const TunnelLink = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <Link
    to="/tunnels/$id"
    params={{ id: entry.id }}
    className="block truncate rounded-sm font-medium after:absolute after:inset-0"
  >
    {entry.label === '' ? entry.tunnel_id : entry.label}
  </Link>
);

const WideCells = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <>
    <span role="cell">
      <TunnelState entry={entry} />
    </span>
    <span role="cell" className="font-mono text-sm">
      {entry.protocol}
    </span>
    <span role="cell" className="min-w-0">
      <TunnelLink entry={entry} />
    </span>
    <span role="cell" className={classNames('truncate text-muted', WITH_ROOM)} title={entry.region_id ?? undefined}>
      {entry.region_id ?? '–'}
    </span>
    <span role="cell" className="text-muted">
      <Time at={entry.registered_at} />
    </span>
    <span role="cell" className={classNames('text-muted', WITH_ROOM)}>
      <Duration from={entry.registered_at} until={entry.unregistered_at} />
    </span>
    <span role="cell" className="text-right" title={visitsMeaning(entry.protocol)}>
      <Count value={entry.request_count} />
    </span>
    <span role="cell" className="text-right">
      <Bytes value={entry.bytes_proxied} />
    </span>
  </>
);

const NarrowCells = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <>
    <span role="cell" className="flex items-center justify-between gap-3">
      <TunnelLink entry={entry} />
      <TunnelState entry={entry} />
    </span>
    <span role="cell" className="mt-1 flex items-baseline justify-between gap-3 text-muted text-sm">
      <span className="min-w-0 truncate">
        {entry.protocol} · {visitsText(entry.protocol, entry.request_count)} · <Bytes value={entry.bytes_proxied} />
      </span>
      <Time at={entry.registered_at} />
    </span>
  </>
);

const HEADS = [
  { head: 'State' },
  { head: 'Protocol' },
  { head: 'Label' },
  { head: 'Region', look: WITH_ROOM },
  { head: 'Started' },
  { head: 'Duration', look: WITH_ROOM },
  { head: 'Requests', look: 'text-right' },
  { head: 'Data', look: 'text-right' },
] as const;

export const TunnelHead = () => (
  <div role="rowgroup" className="max-md:sr-only">
    <div
      role="row"
      aria-rowindex={1}
      className={classNames(COLUMNS, 'border-line border-b bg-page py-2 text-muted text-sm')}
    >
      {HEADS.map(({ head, ...more }) => (
        <span key={head} role="columnheader" className={classNames('font-medium', 'look' in more && more.look)}>
          {head}
        </span>
      ))}
    </div>
  </div>
);

const ROW_PX = { wide: 48, narrow: 76 } as const;

export const useRowPx = (): number => (useIsNarrow() ? ROW_PX.narrow : ROW_PX.wide);

export interface TunnelRowProps {
  readonly entry: TunnelLogEntry;
  /** From 0, the head not counted. */
  readonly index: number;
  /** Where it stands in a list that is drawn in part; absent: below the one before. */
  readonly top?: number;
}

/** Scrolling moves rows in and out; those that stay are not drawn again. */
export const TunnelRow = memo(({ entry, index, top }: TunnelRowProps) => {
  const isNarrow = useIsNarrow();
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-index={index}
      className={classNames(
        'border-line border-b hover:bg-page has-focus-visible:bg-accent-soft',
        isNarrow ? 'h-[76px] px-4 py-3' : `h-12 ${COLUMNS}`,
        top === undefined ? 'relative' : 'absolute inset-x-0 top-0',
      )}
      style={top === undefined ? undefined : { transform: `translateY(${top}px)` }}
    >
      {isNarrow ? <NarrowCells entry={entry} /> : <WideCells entry={entry} />}
    </div>
  );
});
TunnelRow.displayName = 'TunnelRow';

/** What is counted of a tunnel, in the word of its protocol. */
const UNITS: Readonly<Record<ShownProtocol, readonly [one: string, many: string, meaning: string]>> = {
  http: ['request', 'requests', 'HTTP requests'],
  tcp: ['connection', 'connections', 'Connections of visitors'],
  udp: ['flow', 'flows', 'Visitors, each until it was silent'],
  p2p: ['peer', 'peers', 'Peers that joined'],
};

const visitsText = (protocol: ShownProtocol, count: number): string => {
  const [one, many] = UNITS[protocol];
  return plural(count, one, many);
};

export const visitsWord = (protocol: ShownProtocol): string => {
  const word = UNITS[protocol][1];
  return word.charAt(0).toUpperCase() + word.slice(1);
};

export const visitsMeaning = (protocol: ShownProtocol): string => UNITS[protocol][2];
