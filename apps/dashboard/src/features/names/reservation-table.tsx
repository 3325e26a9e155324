// Table of names and ports. On phones, a list with an expandable line per name. Long lists are shown partially at first.
import { Link } from '@tanstack/react-router';
import type { Reservation } from '@tunnel/contract';
import { type ReactNode, useMemo, useState } from 'react';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { countText, plural } from '../../ui/format.ts';
import { useMedia } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Day, Time } from '../../ui/values.tsx';
import { addressText, hrefOf, kindText, nameOf } from './reservations.ts';

export interface ReservationActions {
  readonly onRelease: (one: Reservation) => void;
  readonly onReserve: (one: Reservation) => void;
  /** ID of the name or port that is being reserved. Undefined if no request is in progress. */
  readonly reserving: string | undefined;
}

interface ReservationTableProps extends Partial<ReservationActions> {
  readonly caption: string;
  /** Names and ports in the table. Undefined while loading. */
  readonly rows?: readonly Reservation[];
  readonly empty?: ReactNode;
}

/** Rows of a long list that are shown at first, so that hundreds of names do not slow down the page. */
const FIRST_ROWS = 50;

export const ReservationTable = ({ caption, rows, empty, onRelease, onReserve, reserving }: ReservationTableProps) => {
  const [showsAll, setShowsAll] = useState(false);
  const isPhone = useMedia('(width < 40rem)');
  const actions = useMemo(
    () => ({ onRelease: onRelease ?? ignore, onReserve: onReserve ?? ignore, reserving }),
    [onRelease, onReserve, reserving],
  );
  if (rows?.length === 0 && empty !== undefined) return empty;
  const shown = showsAll ? rows : rows?.slice(0, FIRST_ROWS);
  const hidden = (rows?.length ?? 0) - (shown?.length ?? 0);
  const List = isPhone ? NameLines : NameTable;
  return (
    <>
      <List {...{ caption, actions }} rows={shown} />
      {hidden > 0 && (
        <div className="border-line border-t px-4 py-3 sm:px-5">
          <Button size="small" onClick={() => setShowsAll(true)}>
            Show {countText(hidden)} more
          </Button>
        </div>
      )}
    </>
  );
};

const ignore = (): void => {};

interface ListProps {
  readonly caption: string;
  readonly rows: readonly Reservation[] | undefined;
  readonly actions: ReservationActions;
}

const NameTable = ({ caption, rows, actions }: ListProps) => {
  const columns = useMemo(() => columnsFor(actions), [actions]);
  return <Table {...{ caption, columns, rows }} rowKey={({ id }) => id} />;
};

const NameLines = ({ caption, rows, actions }: ListProps) => (
  <ul aria-label={caption} aria-busy={rows === undefined} className="divide-y divide-line border-line border-t">
    {rows?.map((one) => (
      <li key={one.id} data-name={nameOf(one)}>
        <NameLine {...{ one, actions }} />
      </li>
    ))}
    {rows === undefined && (
      <li className="px-4 py-2.5">
        <Skeleton className="h-[1.375rem] w-40" />
      </li>
    )}
  </ul>
);

/** A name on a phone: one line that expands to the address, the state and the actions. The details are rendered only while expanded. */
const NameLine = ({ one, actions }: { readonly one: Reservation; readonly actions: ReservationActions }) => {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)} className="group">
      <summary className="flex list-none items-center gap-2 px-4 py-2.5 focus-visible:-outline-offset-2 [&::-webkit-details-marker]:hidden">
        <span className="min-w-0 flex-1 truncate font-medium">{nameOf(one)}</span>
        <LineState one={one} />
        <Icon name="chevron" className="size-4 text-muted group-open:rotate-180" />
      </summary>
      {open && (
        <div className="space-y-3 px-4 pb-3.5">
          {addressText(one) === '' ? <p className="wrap-anywhere">{one.label}</p> : <Address one={one} />}
          <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-muted text-sm">
            {kindText(one)}
            <State one={one} />
            <Use one={one} />
          </p>
          <Actions one={one} {...actions} />
        </div>
      )}
    </details>
  );
};

/** The most important fact about a name: in use, reserved, or the end of its hold time. */
const LineState = ({ one }: { readonly one: Reservation }) => {
  if (one.active_tunnels > 0) return <InUse />;
  if (one.state === 'reserved') return <Badge tone="good">Reserved</Badge>;
  if (one.expires_at === null) return null;
  return (
    <span className="shrink-0 text-muted text-sm">
      until <Day at={one.expires_at} />
    </span>
  );
};

const InUse = () => (
  <Badge tone="accent" dot>
    In use
  </Badge>
);

const columnsFor = (actions: ReservationActions): readonly Column<Reservation>[] => [
  { key: 'name', header: 'Name', isHead: true, cell: (one) => <Name one={one} /> },
  { key: 'kind', header: 'Type', cell: (one) => <span className="text-muted">{kindText(one)}</span> },
  { key: 'state', header: 'State', cell: (one) => <State one={one} /> },
  { key: 'use', header: 'Use', cell: (one) => <Use one={one} /> },
  { key: 'action', header: 'Action', align: 'end', cell: (one) => <Actions one={one} {...actions} /> },
];

/** Table cell with a name and the public address below it. */
const Name = ({ one }: { readonly one: Reservation }) => (
  <span className="inline-block min-w-0 sm:min-w-56">
    <span className="wrap-anywhere block">{one.label}</span>
    {addressText(one) !== '' && <Address one={one} />}
  </span>
);

const Address = ({ one }: { readonly one: Reservation }) => {
  const address = addressText(one);
  return (
    <span className="inline-flex min-w-0 items-center gap-1 font-normal text-muted text-sm">
      <span className="wrap-anywhere">{address}</span>
      <AddressTools text={address} href={hrefOf(one)} />
    </span>
  );
};

/** State of a name, with the end of its hold time. The end is unknown while a tunnel uses the name. */
const State = ({ one }: { readonly one: Reservation }) => {
  if (one.state === 'reserved') return <Badge tone="good">Reserved</Badge>;
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5 max-sm:justify-end lg:flex-nowrap">
      <Badge tone={one.state === 'held' ? 'neutral' : 'warn'}>{one.state === 'held' ? 'Held' : 'Released'}</Badge>
      {one.expires_at !== null && (
        <span className="whitespace-nowrap text-muted text-sm">
          until <Day at={one.expires_at} />
        </span>
      )}
    </span>
  );
};

const Use = ({ one: { active_tunnels: active, last_used_at: used } }: { readonly one: Reservation }) => {
  if (active > 0) {
    return (
      <Link to="/tunnels" search={{ state: 'active' }} className="rounded-full" title={plural(active, 'live tunnel')}>
        <InUse />
      </Link>
    );
  }
  if (used === null) return <span className="whitespace-nowrap text-muted">Never used</span>;
  return (
    <span className="whitespace-nowrap text-muted">
      Used <Time at={used} />
    </span>
  );
};

const Actions = ({ one, onRelease, onReserve, reserving }: ReservationActions & { readonly one: Reservation }) => {
  const name = nameOf(one);
  return (
    <span className="inline-flex flex-wrap justify-end gap-2">
      {one.state !== 'reserved' && (
        <Button
          size="small"
          pending={reserving === one.id}
          aria-label={one.state === 'held' ? `Reserve ${name}` : `Take back ${name}`}
          onClick={() => onReserve(one)}
        >
          {one.state === 'held' ? 'Reserve' : 'Take back'}
        </Button>
      )}
      {one.state !== 'released' && (
        <Button
          size="small"
          kind={one.state === 'held' ? 'quiet' : 'secondary'}
          aria-label={`Release ${name}`}
          onClick={() => onRelease(one)}
        >
          Release
        </Button>
      )}
    </span>
  );
};
