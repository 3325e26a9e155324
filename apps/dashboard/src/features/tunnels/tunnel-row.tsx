// One tunnel in the list: a line of cells on a wide page, a small card on a phone.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { memo } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { unguardedQuery } from '../../app/queries.ts';
import { addressOf, hasAddress, originText, protocolText } from '../../app/tunnel-address.ts';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { classNames } from '../../ui/class-names.ts';
import { plural } from '../../ui/format.ts';
import { useIsNarrow } from '../../ui/hooks.ts';
import { Bytes, Count, Duration, Time } from '../../ui/values.tsx';

/** The address needs its room: where there is little, region and times are left to the page of the tunnel. */
const COLUMNS =
  'grid-cols-[4.5rem_minmax(0,1fr)_4.5rem_5rem_5rem] lg:grid-cols-[4.5rem_minmax(0,1fr)_4.5rem_6rem_6.5rem_6.5rem_5.5rem_5rem] items-center gap-x-4 px-5 md:grid';
const WITH_ROOM = 'max-lg:hidden';

export const TunnelState = ({ entry }: { readonly entry: Pick<TunnelLogEntry, 'unregistered_at'> }) =>
  entry.unregistered_at === null ? (
    <Badge tone="good" dot>
      Live
    </Badge>
  ) : (
    <Badge>Ended</Badge>
  );

/** The whole row can be pressed, and opens the page of the tunnel. */
const TunnelLink = ({ entry, text }: { readonly entry: TunnelLogEntry; readonly text: string }) => (
  <Link
    to="/tunnels/$id"
    params={{ id: entry.id }}
    title={text}
    className="block min-w-0 truncate rounded-sm font-medium after:absolute after:inset-0"
  >
    {text}
  </Link>
);

const Address = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const { text, href } = addressOf(entry);
  return (
    <span className="flex min-w-0 items-center gap-1">
      <TunnelLink {...{ entry, text }} />
      {entry.unregistered_at === null && hasAddress(entry) && <AddressTools {...{ text, href }} />}
    </span>
  );
};

const Origin = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const text = originText(entry);
  return text === '' ? null : (
    <span className="block min-w-0 truncate text-muted text-sm" title={`${text}: name of the tunnel, and its computer`}>
      {text}
    </span>
  );
};

/** Asked for once for all rows; a row is drawn again only when its own answer changes. */
const OpenMark = ({ entry: { tunnel_id, protocol, unregistered_at } }: { readonly entry: TunnelLogEntry }) => {
  const isAsked = unregistered_at === null && protocol !== 'p2p';
  const { data: isOpen } = useQuery({
    ...unguardedQuery(useApi()),
    enabled: isAsked,
    select: ({ tunnel_ids }) => tunnel_ids.includes(tunnel_id),
  });
  if (!isAsked || isOpen !== true) return null;
  return (
    <span className="shrink-0">
      <Badge title="No rule keeps anyone out: whoever has the address comes in.">Open to everyone</Badge>
    </span>
  );
};

const WideCells = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <>
    <span role="cell">
      <TunnelState entry={entry} />
    </span>
    <span role="cell" className="min-w-0">
      <Address entry={entry} />
      <span className="flex min-w-0 items-center gap-2">
        <Origin entry={entry} />
        <OpenMark entry={entry} />
      </span>
    </span>
    <span role="cell" className="text-muted">
      {protocolText(entry.protocol)}
    </span>
    <span role="cell" className={classNames('truncate text-muted', WITH_ROOM)} title={entry.region_id ?? undefined}>
      {entry.region_id ?? '–'}
    </span>
    <span role="cell" className={classNames('text-muted', WITH_ROOM)}>
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
    <span role="cell" className="flex h-6 items-center">
      <Address entry={entry} />
    </span>
    <span role="cell" className="flex h-5 items-center justify-between gap-2">
      <span className="flex min-w-0 items-center gap-2">
        <Origin entry={entry} />
        <OpenMark entry={entry} />
      </span>
      <TunnelState entry={entry} />
    </span>
    <span role="cell" className="flex items-baseline justify-between gap-3 text-muted text-sm">
      <span className="min-w-0 truncate">
        {protocolText(entry.protocol)} · {visitsText(entry.protocol, entry.request_count)} ·{' '}
        <Bytes value={entry.bytes_proxied} />
      </span>
      <Time at={entry.registered_at} />
    </span>
  </>
);

const HEADS = [
  { head: 'State' },
  { head: 'URL' },
  { head: 'Protocol' },
  { head: 'Region', look: WITH_ROOM },
  { head: 'Started', look: WITH_ROOM },
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

const ROW_PX = { wide: 60, narrow: 92 } as const;

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
        isNarrow ? 'h-[92px] px-4 py-3' : `h-15 ${COLUMNS}`,
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
  tcp: ['connection', 'connections', 'TCP connections'],
  udp: ['flow', 'flows', 'One for each visitor'],
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
