// The list of pools. Only what is near the screen exists in the page, so that hundreds of large pools scroll like three.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import type { GroupSummary, UsageRegion } from '@tunnel/contract';
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';
import { publicAddress } from '../../app/client-commands.ts';
import { isOpen, useOpenPools } from './open-pools.ts';
import { PoolCard } from './pool-card.tsx';
import { poolKey } from './pools-seen.ts';

const HEAD_PX = 94;
const TABLE_HEAD_PX = 38;
const MEMBER_PX = 62;
const MEMBERS_GUESSED_MAX = 50;

export interface PoolListProps {
  readonly groups: readonly GroupSummary[];
  readonly oldSince: Readonly<Record<string, number>>;
  readonly regions: readonly UsageRegion[];
}

export const PoolList = ({ groups, oldSince, regions }: PoolListProps) => {
  const { chosen, setOpen } = useOpenPools();
  const list = useRef<HTMLUListElement>(null);
  const top = useTopOf(list);
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
    <ul ref={list} aria-label="Pools" className="relative" style={{ height: virtualizer.getTotalSize() }}>
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
              address={publicAddress(group, regionOf(group, regions))}
              oldSince={oldSince[group.region_id] ?? null}
            />
          </li>
        );
      })}
    </ul>
  );
};

const regionOf = (group: GroupSummary, regions: readonly UsageRegion[]): UsageRegion | undefined =>
  regions.find(({ region_id }) => region_id === group.region_id);

/** Where the list begins in the page; what stands above it comes and goes. */
const useTopOf = (list: RefObject<HTMLElement | null>): number => {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => {
      if (list.current !== null) setTop(Math.round(list.current.getBoundingClientRect().top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [list]);
  return top;
};
