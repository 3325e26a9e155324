// What belongs to the account: its own domains, reserved names and ports, and those that are kept for a while.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Reservation } from '@tunnel/contract';
import { type ReactNode, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { Problem } from '../../ui/problem.tsx';
import { AddDomainDialog } from './add-domain-dialog.tsx';
import { OwnDomainsCard } from './own-domains-card.tsx';
import { ReleaseDialog } from './release-dialog.tsx';
import { type ReservationActions, ReservationTable } from './reservation-table.tsx';
import {
  limitQuery,
  limitText,
  nameOf,
  RESERVATIONS_KEY,
  reservationsQuery,
  sortReservations,
} from './reservations.ts';
import { ReserveDialog } from './reserve-dialog.tsx';

export const DomainsPage = () => {
  const reservations = useQuery(reservationsQuery(useApi()));
  const keeping = useKeep();
  const [adding, setAdding] = useState(false);
  const [choosing, setChoosing] = useState(false);
  const [releasing, setReleasing] = useState<Reservation | null>(null);
  const add = (
    <Button kind="primary" onClick={() => setAdding(true)}>
      <Icon name="plus" />
      Add domain
    </Button>
  );
  const reserve = (
    <Button onClick={() => setChoosing(true)}>
      <Icon name="plus" />
      Reserve
    </Button>
  );
  const actions: ReservationActions = {
    onRelease: setReleasing,
    onReserve: keeping.mutate,
    reserving: keeping.isPending ? keeping.variables.id : undefined,
  };
  return (
    <>
      <PageHead
        title="Domains"
        description="Your own domains, and names and ports that stay yours, whether or not a tunnel is open."
        actions={
          <>
            {add}
            {reserve}
          </>
        }
      />
      <div className="space-y-6">
        <OwnDomainsCard add={add} />
        <Outcome keeping={keeping} />
        <Loaded
          query={reservations}
          title="Couldn't load your names and ports"
          pending={<ReservedCard actions={actions} reserve={reserve} />}
        >
          {(list) => {
            const { reserved, keptForNow } = sortReservations(list);
            return (
              <>
                <ReservedCard rows={reserved} {...{ actions, reserve }} />
                {keptForNow.length > 0 && <KeptCard rows={keptForNow} actions={actions} />}
              </>
            );
          }}
        </Loaded>
      </div>
      <AddDomainDialog open={adding} onClose={() => setAdding(false)} />
      <ReserveDialog open={choosing} onClose={() => setChoosing(false)} />
      <ReleaseDialog one={releasing} onClose={() => setReleasing(null)} />
    </>
  );
};

/** Reserves what is kept already. */
const useKeep = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ kind, label, region_id }: Reservation) =>
      api.reserve({ kind, label, ...(region_id === null ? {} : { region_id }) }),
    onSettled: () => queries.invalidateQueries({ queryKey: RESERVATIONS_KEY }),
  });
};

/** The frame is always there: screen readers tell what appears in it. */
const Outcome = ({ keeping }: { readonly keeping: ReturnType<typeof useKeep> }) => (
  <div role="status" className="empty:hidden">
    {keeping.isSuccess && (
      <Notice tone="good">
        <span className="wrap-anywhere">{nameOf(keeping.data)}</span> is reserved. It stays yours until you release it.
      </Notice>
    )}
    {keeping.isError && <Problem title={`Couldn't reserve ${nameOf(keeping.variables)}`} error={keeping.error} />}
  </div>
);

interface ReservedCardProps {
  /** undefined: on their way. */
  readonly rows?: readonly Reservation[];
  readonly actions: ReservationActions;
  /** The button of an empty list. */
  readonly reserve: ReactNode;
}

const ReservedCard = ({ rows, actions, reserve }: ReservedCardProps) => {
  const plan = useQuery(limitQuery(useApi())).data;
  return (
    <Card
      title="Reserved"
      // Its line is there from the beginning.
      description={plan === undefined || rows === undefined ? '\u00a0' : limitText(rows.length, plan.plan, plan.limit)}
      padded={false}
    >
      <ReservationTable
        caption="Reserved names and ports"
        {...actions}
        {...(rows === undefined ? {} : { rows })}
        empty={
          <Empty icon="domains" title="Nothing reserved yet" action={reserve}>
            Reserve a name or a port, and nobody else can take it while your tunnel is closed.
          </Empty>
        }
      />
    </Card>
  );
};

interface KeptCardProps {
  readonly rows: readonly Reservation[];
  readonly actions: ReservationActions;
}

const KeptCard = ({ rows, actions }: KeptCardProps) => (
  <Card
    title="Kept for now"
    description="What your tunnels used, and what you released. Nobody else can take these yet; reserve one to keep it."
    padded={false}
  >
    <ReservationTable caption="Names and ports that are kept for now" rows={rows} {...actions} />
  </Card>
);
