// A row of the tunnel list: table cells on wide screens, a small card on phones.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { memo } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { unguardedQuery } from '../../api/queries.ts';
import { addressOf, hasAddress, kindOf, originText, protocolText } from '../../shared/tunnel-address.ts';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { classNames } from '../../ui/class-names.ts';
import { countText, plural } from '../../ui/format.ts';
import { useIsNarrow } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { Bytes, Count, Duration, Time } from '../../ui/values.tsx';
import type { ListRow } from './address-rows.ts';

/** Columns of the tunnel list. The address gets most of the width; on medium screens, region and times appear only on the tunnel's page. */
const COLUMNS =
  'grid-cols-[4.5rem_minmax(0,1fr)_4.5rem_5rem_5rem] lg:grid-cols-[4.5rem_minmax(0,1fr)_4.5rem_6rem_6.5rem_6.5rem_5.5rem_5rem] items-center gap-x-4 px-5 md:grid';
const WITH_ROOM = 'max-lg:hidden';

interface TunnelStateProps {
  readonly entry: Pick<TunnelLogEntry, 'unregistered_at'>;
  /** Number of live tunnels represented by the badge. */
  readonly liveCount?: number;
}

export const TunnelState = ({ entry, liveCount = 1 }: TunnelStateProps) =>
  entry.unregistered_at === null ? (
    <Badge tone="good" dot>
      {liveCount > 1 ? `${countText(liveCount)} live` : 'Live'}
    </Badge>
  ) : (
    <Badge>Ended</Badge>
  );

/** Link to the tunnel's page. Its clickable area covers the whole row. */
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

/** Address cell of a row. A tunnel below an expanded address shows its origin, without repeating the address and its buttons. */
const Address = ({ entry, rowKey, isPart, onStop }: CellProps) => {
  const { text, href } = addressOf(entry);
  const isLive = entry.unregistered_at === null;
  return (
    <span className="flex min-w-0 items-center gap-1">
      <TunnelLink entry={entry} text={isPart ? originText(entry) || entry.tunnel_id : text} />
      {isLive && !isPart && hasAddress(entry) && <AddressTools {...{ text, href }} />}
      {isLive && onStop !== undefined && (
        <button
          type="button"
          title="Stop"
          aria-label={isPart ? `Stop ${text} (${originText(entry) || entry.tunnel_id})` : `Stop ${text}`}
          onClick={() => onStop(rowKey)}
          className={buttonClass('quiet', 'small', 'relative z-1 -my-1.5 w-8 px-0!')}
        >
          <Icon name="stop" />
        </button>
      )}
    </span>
  );
};

const Origin = ({ entry, isPart }: Pick<CellProps, 'entry' | 'isPart'>) => {
  const text = isPart ? entry.tunnel_id : originText(entry);
  return text === '' ? null : (
    <span
      className="block min-w-0 truncate text-muted text-sm"
      title={isPart ? `${text}: tunnel ID` : `${text}: tunnel name and computer`}
    >
      {text}
    </span>
  );
};

/** Button that expands an address with several tunnels. */
const HistoryToggle = ({ entry, rowKey, count, isOpen, onToggle }: CellProps) =>
  count > 1 &&
  onToggle !== undefined && (
    <button
      type="button"
      aria-expanded={isOpen}
      aria-label={`${plural(count, 'tunnel')} at ${addressOf(entry).text}`}
      onClick={() => onToggle(rowKey)}
      className="relative z-1 inline-flex shrink-0 items-center gap-0.5 whitespace-nowrap rounded-sm text-muted text-sm hover:text-ink"
    >
      {plural(count, 'tunnel')}
      <Icon name={isOpen ? 'chevron' : 'right'} className="size-3" />
    </button>
  );

/** Badge for a tunnel without access rules. All rows share a single query, and a row renders only when its own result changes. */
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
      <Badge title="No rules: anyone with the URL can visit.">Open to everyone</Badge>
    </span>
  );
};

const WideCells = (cells: CellProps) => {
  const { entry, liveCount, requests, bytes, isPart } = cells;
  return (
    <>
      <span role="cell">
        <TunnelState {...{ entry, liveCount }} />
      </span>
      <span role="cell" className={classNames('min-w-0', isPart && 'pl-5')}>
        <Address {...cells} />
        <span className="flex min-w-0 items-center gap-2">
          <Origin {...{ entry, isPart }} />
          {!isPart && <OpenMark entry={entry} />}
          <HistoryToggle {...cells} />
        </span>
      </span>
      <span role="cell" className="text-muted">
        {protocolText(kindOf(entry))}
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
        <Count value={requests} />
      </span>
      <span role="cell" className="text-right">
        <Bytes value={bytes} />
      </span>
    </>
  );
};

const NarrowCells = (cells: CellProps) => {
  const { entry, liveCount, requests, bytes, isPart } = cells;
  return (
    <>
      <span role="cell" className="flex h-6 items-center">
        <Address {...cells} />
      </span>
      <span role="cell" className="flex h-5 items-center justify-between gap-2">
        <span className="flex min-w-0 items-center gap-2">
          <Origin {...{ entry, isPart }} />
          {!isPart && <OpenMark entry={entry} />}
        </span>
        <TunnelState {...{ entry, liveCount }} />
      </span>
      <span role="cell" className="flex items-baseline justify-between gap-3 text-muted text-sm">
        <span className="min-w-0 truncate">
          {protocolText(kindOf(entry))} · {visitsText(entry.protocol, requests)} · <Bytes value={bytes} />
        </span>
        <HistoryToggle {...cells} />
        <Time at={entry.registered_at} />
      </span>
    </>
  );
};

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

export interface RowActions {
  /** Called to stop the row's tunnels. Absent if tunnels cannot be stopped from the list. */
  readonly onStop?: ((rowKey: string) => void) | undefined;
  /** Called to expand or collapse the row's address. Absent if the list has no expandable rows. */
  readonly onToggle?: ((rowKey: string) => void) | undefined;
}

interface CellProps extends RowActions, Omit<ListRow, 'key'> {
  readonly rowKey: string;
  readonly isOpen: boolean;
}

/** Converts a line of the list to props. `key` becomes `rowKey`, because React reserves the name `key`. */
export const cellsOf = ({ key, ...line }: ListRow) => ({ ...line, rowKey: key });

export interface TunnelRowProps extends CellProps {
  /** Index of the row, from 0, without the header row. */
  readonly index: number;
  /** Vertical position in px within a virtualized list. Absent if the row follows the previous row in the normal flow. */
  readonly top?: number;
}

/** Row of the tunnel list. Memoized, because scrolling a virtualized list replaces some rows while the others stay unchanged. */
export const TunnelRow = memo(({ index, top, ...cells }: TunnelRowProps) => {
  const isNarrow = useIsNarrow();
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-index={index}
      className={classNames(
        'border-line border-b hover:bg-page has-focus-visible:bg-accent-soft',
        isNarrow ? 'h-[92px] px-4 py-3' : `h-15 ${COLUMNS}`,
        isNarrow && cells.isPart && 'pl-8',
        top === undefined ? 'relative' : 'absolute inset-x-0 top-0',
      )}
      style={top === undefined ? undefined : { transform: `translateY(${top}px)` }}
    >
      {isNarrow ? <NarrowCells {...cells} /> : <WideCells {...cells} />}
    </div>
  );
});
TunnelRow.displayName = 'TunnelRow';

/** Units of a tunnel's visit count, by protocol: singular, plural, and an explanation. */
const UNITS: Readonly<Record<ShownProtocol, readonly [one: string, many: string, meaning: string]>> = {
  http: ['request', 'requests', 'HTTP requests'],
  tcp: ['connection', 'connections', 'TCP connections'],
  udp: ['flow', 'flows', 'One per visitor'],
  p2p: ['peer', 'peers', 'Connected peers'],
};

export const visitsText = (protocol: ShownProtocol, count: number): string => {
  const [one, many] = UNITS[protocol];
  return plural(count, one, many);
};

export const visitsMeaning = (protocol: ShownProtocol): string => UNITS[protocol][2];
