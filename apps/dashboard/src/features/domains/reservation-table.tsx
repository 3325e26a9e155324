// Names and ports in a table: where each is reached, whose it is until when, whether a tunnel uses it, and what can be done about it.
import { Link } from '@tanstack/react-router';
import type { Reservation } from '@tunnel/contract';
import { type ReactNode, useMemo } from 'react';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { plural } from '../../ui/format.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Day, Time } from '../../ui/values.tsx';
import { addressText, hrefOf, kindText, nameOf } from './reservations.ts';

export interface ReservationActions {
  readonly onRelease: (one: Reservation) => void;
  readonly onReserve: (one: Reservation) => void;
  /** The id of the one that is being reserved. */
  readonly reserving: string | undefined;
}

interface ReservationTableProps extends Partial<ReservationActions> {
  readonly caption: string;
  /** undefined: on their way. */
  readonly rows?: readonly Reservation[];
  readonly empty?: ReactNode;
}

export const ReservationTable = ({ caption, rows, empty, onRelease, onReserve, reserving }: ReservationTableProps) => {
  const columns = useMemo(
    () => columnsFor({ onRelease: onRelease ?? ignore, onReserve: onReserve ?? ignore, reserving }),
    [onRelease, onReserve, reserving],
  );
  return <Table {...{ caption, columns, rows, empty }} rowKey={({ id }) => id} />;
};

const ignore = (): void => {};

const columnsFor = (actions: ReservationActions): readonly Column<Reservation>[] => [
  { key: 'name', header: 'Name', isHead: true, cell: (one) => <Name one={one} /> },
  { key: 'kind', header: 'Type', cell: (one) => <span className="text-muted">{kindText(one)}</span> },
  { key: 'state', header: 'State', cell: (one) => <State one={one} /> },
  { key: 'use', header: 'Use', cell: (one) => <Use one={one} /> },
  { key: 'action', header: 'Action', align: 'end', cell: (one) => <Actions one={one} {...actions} /> },
];

/** Where it is reached stands below it. */
const Name = ({ one }: { readonly one: Reservation }) => {
  const address = addressText(one);
  return (
    <span className="inline-block min-w-0 sm:min-w-56">
      <span className="wrap-anywhere block">{one.label}</span>
      {address !== '' && (
        <span className="inline-flex min-w-0 items-center gap-1 font-normal text-muted text-sm">
          <span className="wrap-anywhere">{address}</span>
          <AddressTools text={address} href={hrefOf(one)} />
        </span>
      )}
    </span>
  );
};

/** While a tunnel uses it, its last day is not known. */
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
        <Badge tone="accent" dot>
          In use
        </Badge>
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
