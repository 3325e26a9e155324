// Virtualized list of tunnels. Only visible rows are rendered, so that a long list stays fast. New rows above the visible rows do not
// move them.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import { usePageTop } from '../../ui/hooks.ts';
import { moved, useKeys } from '../../ui/keyboard.ts';
import type { ListRow } from './address-rows.ts';
import { cellsOf, type RowActions, TunnelHead, TunnelRow, useRowPx } from './tunnel-row.tsx';

/** Number of rows before the end of the list at which more rows are loaded. */
const AHEAD = 30;
/** Height of the navigation that covers the bottom of the page on phones. */
const FOOT_PX = 80;

export interface TunnelListProps extends RowActions {
  readonly rows: readonly ListRow[];
  readonly isWhole: boolean;
  /** Number of tunnels that were loaded and filtered for the rows. */
  readonly readCount: number;
  readonly onEndNear: () => void;
  /** Key of the expanded address. Undefined if no address is expanded. */
  readonly open: string | undefined;
}

export const TunnelList = ({ rows, isWhole, readCount, onEndNear, open, onStop, onToggle }: TunnelListProps) => {
  const rowPx = useRowPx();
  const list = useRef<HTMLDivElement>(null);
  const top = usePageTop(list);
  // oxlint-disable-next-line react/incompatible-library -- nothing that it returns is memoized here
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowPx,
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 10,
    scrollMargin: top,
    scrollPaddingEnd: FOOT_PX,
  });
  useLayoutEffect(() => virtual.measure(), [virtual, rowPx]);
  useStillWhileRowsCome(rows, rowPx, top);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const isEndNear = !isWhole && last >= rows.length - AHEAD;
  useEffect(() => {
    if (isEndNear) onEndNear();
    // readCount is a dependency, so that loading continues after a page with too few matching rows.
  }, [isEndNear, onEndNear, rows.length, readCount]);
  useRowKeys(list, rows, (index) => virtual.scrollToIndex(index, { align: 'auto' }));
  return (
    <div role="table" aria-label="Tunnels by address, live ones first" aria-rowcount={isWhole ? rows.length + 1 : -1}>
      <TunnelHead />
      <div ref={list} role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ key, index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <TunnelRow
              key={key}
              {...cellsOf(row)}
              {...{ index, onStop, onToggle }}
              isOpen={!row.isPart && row.key === open}
              top={start - top}
            />
          );
        })}
      </div>
    </div>
  );
};

/** Scrolls so that the first visible row keeps its position when rows appear above it. */
const useStillWhileRowsCome = (rows: readonly ListRow[], rowPx: number, top: number): void => {
  const before = useRef(rows);
  useLayoutEffect(() => {
    const old = before.current;
    before.current = rows;
    const scrolled = window.scrollY - top;
    if (old === rows || scrolled <= 0) return;
    const first = Math.floor(scrolled / rowPx);
    const key = old[first]?.key;
    const now = key === undefined || rows[first]?.key === key ? first : rows.findIndex((row) => row.key === key);
    if (now >= 0 && now !== first) window.scrollBy({ top: (now - first) * rowPx, behavior: 'instant' });
  }, [rows, rowPx, top]);
};

/** Moves the focus between rows with j, k and the arrow keys. */
const useRowKeys = (
  list: RefObject<HTMLElement | null>,
  rows: readonly ListRow[],
  show: (index: number) => void,
): void => {
  const wanted = useRef<string | null>(null);
  const focusWanted = (): void => {
    if (wanted.current === null) return;
    const index = rows.findIndex(({ key }) => key === wanted.current);
    const link = list.current?.querySelector<HTMLElement>(`[data-index="${index}"] a`);
    if (link == null) return;
    wanted.current = null;
    link.focus({ preventScroll: true });
  };
  // A row that is not rendered yet gets the focus after rendering.
  useEffect(focusWanted);
  useKeys({
    list,
    onMove: (move) => {
      const focused = document.activeElement?.closest<HTMLElement>('[data-index]')?.dataset['index'];
      const index = moved(move, Number(focused ?? -1), rows.length);
      if (index === null) return;
      wanted.current = rows[index]?.key ?? null;
      show(index);
      focusWanted();
    },
  });
};
