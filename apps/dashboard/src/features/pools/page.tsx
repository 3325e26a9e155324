// Page with the load-balanced groups and the current state of their members.
import { useQuery } from '@tanstack/react-query';
import type { GroupSummary } from '@tunnel/contract';
import { useDeferredValue, useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { regionsQuery } from '../../api/queries.ts';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { inputClass } from '../../ui/field.tsx';
import { durationText, plural } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { sentence } from '../../ui/problem-text.ts';
import { PoolList } from './pool-list.tsx';
import {
  filterPools,
  hasTrouble,
  isDown,
  type PoolFilter,
  type PoolsSnapshot,
  poolsQuery,
  silentRegions,
} from './pools.ts';
import { PoolsEmpty } from './pools-empty.tsx';

export const PoolsPage = () => {
  const pools = useQuery(poolsQuery(useApi()));
  return (
    <>
      <PageHead
        title="Groups"
        description="Tunnels in a group share a public address. Every new connection goes to a healthy member, chosen at random."
      />
      <Loaded query={pools} title="Couldn't load your groups" pending={<PoolsPending />}>
        {(snapshot) => <PoolsPanel snapshot={snapshot} />}
      </Loaded>
    </>
  );
};

const PoolsPanel = ({ snapshot }: { readonly snapshot: PoolsSnapshot }) => {
  const [text, setText] = useState('');
  const [shown, setShown] = useState<PoolFilter>('all');
  // Deferred values keep typing and selecting fast, even with a long list.
  const wantedText = useDeferredValue(text);
  const wanted = useDeferredValue(shown);
  const groups = useMemo(() => filterPools(snapshot.groups, wantedText, wanted), [snapshot.groups, wantedText, wanted]);
  const { data: regions = NO_REGIONS, isPending } = useQuery(regionsQuery(useApi()));
  const showAll = (): void => {
    setText('');
    setShown('all');
  };
  // The regions provide the public addresses. Cards with an address are taller, so the list is not rendered until the regions are loaded.
  if (isPending) return <PoolsPending />;
  return (
    <div className="space-y-4">
      <PoolNotices snapshot={snapshot} />
      {snapshot.groups.length === 0 ? (
        snapshot.warnings.length === 0 && <PoolsEmpty />
      ) : (
        <>
          <Filters {...{ snapshot, text, setText, shown, setShown }} />
          {groups.length === 0 ? (
            <Card padded={false}>
              <Empty
                icon="search"
                title="No matching groups"
                action={<Button onClick={showAll}>Show all groups</Button>}
              >
                Try a name, an address, a region, a computer or a tunnel ID.
              </Empty>
            </Card>
          ) : (
            <PoolList groups={groups} staleSince={snapshot.staleSince} regions={regions} />
          )}
        </>
      )}
    </div>
  );
};

const NO_REGIONS: readonly never[] = [];

interface FiltersProps {
  readonly snapshot: PoolsSnapshot;
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly shown: PoolFilter;
  readonly setShown: (shown: PoolFilter) => void;
}

const Filters = ({ snapshot, text, setText, shown, setShown }: FiltersProps) => {
  const { groups } = snapshot;
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
          aria-label="Filter groups"
          placeholder="Filter by name or computer"
          value={text}
          onChange={({ target }) => setText(target.value)}
          className={`${inputClass} pl-9`}
        />
      </div>
      <Choice
        label="Groups to show"
        value={shown}
        onChange={setShown}
        options={[
          { value: 'all', label: `All ${groups.length}` },
          { value: 'trouble', label: `Unhealthy ${groups.filter(hasTrouble).length}` },
        ]}
      />
      <p className="text-muted text-sm sm:ml-auto">
        {plural(groups.length, 'group')}, {healthy} of {plural(members, 'member')} healthy
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

const NAMED_MAX = 5;

/**
 * Notices about groups without healthy members and regions that do not respond. The container is always rendered, so that screen readers
 * announce new notices.
 */
const PoolNotices = ({ snapshot }: { readonly snapshot: PoolsSnapshot }) => {
  const down = snapshot.groups.filter(isDown);
  return (
    <div role="status" className="space-y-3">
      {down.length > 0 && (
        <Notice tone="bad">
          <strong className="font-semibold">
            {plural(down.length, 'group has', 'groups have')} no healthy members: {namesOf(down)}.
          </strong>{' '}
          Visitors get a 502 error.
        </Notice>
      )}
      {snapshot.warnings.map((warning) => (
        <RegionNotice key={warning} warning={warning} snapshot={snapshot} />
      ))}
    </div>
  );
};

const RegionNotice = ({ warning, snapshot }: { readonly warning: string; readonly snapshot: PoolsSnapshot }) => {
  const [region] = silentRegions([warning]);
  const since = region === undefined ? undefined : snapshot.staleSince[region];
  const age = useNow((now) => (since === undefined ? '' : durationText(now - since)));
  return (
    <Notice tone="warn">
      {since === undefined ? (
        sentence(warning)
      ) : (
        <>
          Region {region} did not answer. Groups in this region are shown as of{' '}
          <span aria-hidden="true">{age} ago</span>
          <span className="sr-only">before</span>.
        </>
      )}
    </Notice>
  );
};

const namesOf = (groups: readonly GroupSummary[]): string => {
  const names = groups.slice(0, NAMED_MAX).map(({ name }) => name);
  const more = groups.length - names.length;
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
};
