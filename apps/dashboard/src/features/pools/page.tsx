// The load-balanced pools and their members, as they are now.
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { regionsQuery } from '../../app/regions-query.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { inputClass } from '../../ui/field.tsx';
import { plural } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { filterPools, hasTrouble, type PoolsShown } from './filter.ts';
import { PoolList } from './pool-list.tsx';
import { PoolNotices } from './pool-notices.tsx';
import { PoolsEmpty } from './pools-empty.tsx';
import type { PoolsSeen } from './pools-seen.ts';
import { poolsQuery } from './queries.ts';

export const PoolsPage = () => {
  const pools = useQuery(poolsQuery(useApi()));
  return (
    <>
      <PageHead
        title="Pools"
        description="Tunnels that share one address. Each new connection goes to a healthy member, chosen at random. Refreshed every 2 seconds."
      />
      <Loaded query={pools} title="The pools cannot be shown" pending={<PoolsPending />}>
        {(seen) => <PoolsPanel seen={seen} />}
      </Loaded>
    </>
  );
};

const PoolsPanel = ({ seen }: { readonly seen: PoolsSeen }) => {
  const [text, setText] = useState('');
  const [shown, setShown] = useState<PoolsShown>('all');
  // Typing and choosing stay quick, whatever the size of the list.
  const words = useDeferredValue(text);
  const wanted = useDeferredValue(shown);
  const groups = useMemo(() => filterPools(seen.groups, words, wanted), [seen.groups, words, wanted]);
  const { data: regions = NO_REGIONS, isPending } = useQuery(regionsQuery(useApi()));
  const showAll = (): void => {
    setText('');
    setShown('all');
  };
  // They have the addresses, with which a pool takes more room.
  if (isPending) return <PoolsPending />;
  return (
    <div className="space-y-4">
      <PoolNotices seen={seen} />
      {seen.groups.length === 0 ? (
        seen.warnings.length === 0 && <PoolsEmpty />
      ) : (
        <>
          <Filters {...{ seen, text, setText, shown, setShown }} />
          {groups.length === 0 ? (
            <Card padded={false}>
              <Empty icon="search" title="No pool matches" action={<Button onClick={showAll}>Show all pools</Button>}>
                Names, labels, regions, protocols, tunnel ids and client addresses are searched.
              </Empty>
            </Card>
          ) : (
            <PoolList groups={groups} oldSince={seen.oldSince} regions={regions} />
          )}
        </>
      )}
    </div>
  );
};

const NO_REGIONS: readonly never[] = [];

interface FiltersProps {
  readonly seen: PoolsSeen;
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly shown: PoolsShown;
  readonly setShown: (shown: PoolsShown) => void;
}

const Filters = ({ seen, text, setText, shown, setShown }: FiltersProps) => {
  const { groups } = seen;
  const members = groups.reduce((sum, { member_count }) => sum + member_count, 0);
  const healthy = groups.reduce((sum, { healthy_count }) => sum + healthy_count, 0);
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-3">
      <div className="relative w-full sm:w-72">
        <Icon
          name="search"
          className="-translate-y-1/2 pointer-events-none absolute top-1/2 left-3 size-4 text-muted"
        />
        <input
          type="search"
          aria-label="Filter the pools"
          placeholder="Filter by name, region, address"
          value={text}
          onChange={({ target }) => setText(target.value)}
          className={`${inputClass} pl-9`}
        />
      </div>
      <Choice
        label="Which pools"
        value={shown}
        onChange={setShown}
        options={[
          { value: 'all', label: `All ${groups.length}` },
          { value: 'trouble', label: `With trouble ${groups.filter(hasTrouble).length}` },
        ]}
      />
      <p className="text-muted text-sm sm:ml-auto">
        {plural(groups.length, 'pool')}, {healthy} of {plural(members, 'member')} healthy
      </p>
    </div>
  );
};

const PoolsPending = () => (
  <div className="space-y-4">
    <Skeleton className="h-9 w-72" />
    <div className="space-y-3">
      <Skeleton className="h-24 w-full" />
      <Skeleton className="h-24 w-full" />
      <Skeleton className="h-24 w-full" />
    </div>
  </div>
);
