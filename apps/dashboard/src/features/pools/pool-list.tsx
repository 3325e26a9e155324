// Virtualized list of groups. Only cards near the viewport are rendered, so that hundreds of large groups scroll as fast as three.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import type { GroupSummary, UsageRegion } from '@tunnel/contract';
import { useRef } from 'react';
import { usePageTop } from '../../ui/hooks.ts';
import { isOpen, useOpenPools } from './open-pools.ts';
import { PoolCard } from './pool-card.tsx';
import { poolAddress, poolKey } from './pools.ts';

const HEAD_PX = 94;
const TABLE_HEAD_PX = 57;
const MEMBER_PX = 62;
const MEMBERS_GUESSED_MAX = 50;

export interface PoolListProps {
  readonly groups: readonly GroupSummary[];
  readonly staleSince: Readonly<Record<string, number>>;
  readonly regions: readonly UsageRegion[];
}

export const PoolList = ({ groups, staleSince, regions }: PoolListProps) => {
  const { chosen, setOpen } = useOpenPools();
  const list = useRef<HTMLUListElement>(null);
  const top = usePageTop(list);
  // oxlint-disable-next-line react/incompatible-library -- no compiler memoises here
  const virtualizer = useWindowVirtualizer<HTMLLIElement>({
    count: groups.length,
    estimateSize: (index) => {
      const group = groups[index];
      if (group === undefined || !isOpen(group, chosen)) return HEAD_PX;
      return HEAD_PX + TABLE_HEAD_PX + Math.min(group.member_count, MEMBERS_GUESSED_MAX) * MEMBER_PX;
    },
    getItemKey: (index) => (groups[index] === undefined ? index : poolKey(groups[index])),
    scrollMargin: top,
    gap: 12,
    overscan: 3,
  });
  return (
    <ul ref={list} aria-label="Groups" className="relative" style={{ height: virtualizer.getTotalSize() }}>
      {virtualizer.getVirtualItems().map(({ index, key, start }) => {
        const group = groups[index];
        if (group === undefined) return null;
        return (
          <li
            key={key}
            ref={virtualizer.measureElement}
            data-index={index}
            aria-setsize={groups.length}
            aria-posinset={index + 1}
            className="absolute inset-x-0 top-0"
            style={{ transform: `translateY(${start - top}px)` }}
          >
            <PoolCard
              group={group}
              open={isOpen(group, chosen)}
              setOpen={setOpen}
              address={poolAddress(group, regionOf(group, regions))}
              staleSince={staleSince[group.region_id] ?? null}
            />
          </li>
        );
      })}
    </ul>
  );
};

const regionOf = (group: GroupSummary, regions: readonly UsageRegion[]): UsageRegion | undefined =>
  regions.find(({ region_id }) => region_id === group.region_id);
