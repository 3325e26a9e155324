// Page with the account's names and ports below the server's domain: reserved names, names held for a limited time, and unused random
// names, which are collapsed.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Reservation } from '@tunnel/contract';
import { type ReactNode, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { plural } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { Problem } from '../../ui/problem.tsx';
import { ReleaseDialog } from './release-dialog.tsx';
import { type ReservationActions, ReservationTable } from './reservation-table.tsx';
import {
  keptAfterUse,
  limitQuery,
  limitText,
  nameOf,
  RESERVATIONS_KEY,
  reservationsQuery,
  sortReservations,
} from './reservations.ts';
import { ReserveDialog } from './reserve-dialog.tsx';

export const NamesPage = () => {
  const reservations = useQuery(reservationsQuery(useApi()));
  const keeping = useKeep();
  const [choosing, setChoosing] = useState(false);
  const [releasing, setReleasing] = useState<Reservation | null>(null);
  const reserve = (
    <Button kind="primary" onClick={() => setChoosing(true)}>
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
        title="Names"
        description="Names and ports on this server reserved for your account, even while no tunnel is open."
        actions={reserve}
      />
      <div className="space-y-6">
        <Outcome keeping={keeping} />
        <Loaded
          query={reservations}
          title="Couldn't load your names and ports"
          pending={<ReservedCard actions={actions} reserve={reserve} />}
        >
          {(list) => {
            const { reserved, keptForNow, unusedRandom } = sortReservations(list);
            return (
              <>
                <ReservedCard rows={reserved} {...{ actions, reserve }} />
                {keptForNow.length > 0 && <KeptCard rows={keptForNow} actions={actions} />}
                {unusedRandom.length > 0 && <RandomCard rows={unusedRandom} actions={actions} />}
              </>
            );
          }}
        </Loaded>
      </div>
      <ReserveDialog open={choosing} onClose={() => setChoosing(false)} />
      <ReleaseDialog one={releasing} onClose={() => setReleasing(null)} />
    </>
  );
};

/** Reserves a name that the account already holds for a limited time. */
const useKeep = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ kind, label, region_id }: Reservation) =>
      api.reserve({ kind, label, ...(region_id === null ? {} : { region_id }) }),
    onSettled: () => queries.invalidateQueries({ queryKey: RESERVATIONS_KEY }),
  });
};

/** Result of a reservation. The container is always rendered, so that screen readers announce new messages. */
const Outcome = ({ keeping }: { readonly keeping: ReturnType<typeof useKeep> }) => (
  <div role="status" className="empty:hidden">
    {keeping.isSuccess && (
      <Notice tone="good">
        <span className="wrap-anywhere">{nameOf(keeping.data)}</span> is reserved for your account until you release it.
      </Notice>
    )}
    {keeping.isError && <Problem title={`Couldn't reserve ${nameOf(keeping.variables)}`} error={keeping.error} />}
  </div>
);

interface ReservedCardProps {
  /** Reserved names and ports. Undefined while loading. */
  readonly rows?: readonly Reservation[];
  readonly actions: ReservationActions;
  /** Button to reserve a name, shown in the empty table. */
  readonly reserve: ReactNode;
}

const ReservedCard = ({ rows, actions, reserve }: ReservedCardProps) => {
  const plan = useQuery(limitQuery(useApi())).data;
  return (
    <Card
      title="Reserved"
      // A non-breaking space reserves the line until the description is known.
      description={plan === undefined || rows === undefined ? '\u00a0' : limitText(rows.length, plan.plan, plan.limit)}
      padded={false}
    >
      <ReservationTable
        caption="Reserved names and ports"
        {...actions}
        {...(rows === undefined ? {} : { rows })}
        empty={
          <Empty icon="names" title="No reserved names yet" action={reserve}>
            Reserve a name or port so that no other account can take it while your tunnel is closed.
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
    title="Temporarily held"
    description="Names your tunnels used recently and names you released. Other accounts can't take these names yet. Reserve a name to keep it permanently."
    padded={false}
  >
    <ReservationTable caption="Temporarily held names and ports" rows={rows} {...actions} />
  </Card>
);

/** Card with unused random names. Collapsed, because users rarely look for a random name without a tunnel. */
const RandomCard = ({ rows, actions }: KeptCardProps) => {
  const [open, setOpen] = useState(false);
  const [first] = rows;
  const kept = first === undefined ? '' : keptAfterUse({ ...first, state: 'held' });
  return (
    <details
      onToggle={({ currentTarget, target }) => currentTarget === target && setOpen(currentTarget.open)}
      className="group/random rounded-lg border border-line bg-surface"
    >
      <summary className="flex list-none items-center gap-2 rounded-lg px-4 py-3 sm:px-5 [&::-webkit-details-marker]:hidden">
        <Icon name="right" className="size-4 text-muted group-open/random:rotate-90" />
        <span className="font-semibold">{plural(rows.length, 'unused random name')}</span>
      </summary>
      {open && (
        <>
          <p className="px-4 pb-4 text-muted text-sm sm:px-5">
            Names assigned to tunnels started without a name.{' '}
            {kept !== '' && `A random name is held for ${kept} after the last use.`}
          </p>
          <ReservationTable caption="Unused random names" rows={rows} {...actions} />
        </>
      )}
    </details>
  );
};
