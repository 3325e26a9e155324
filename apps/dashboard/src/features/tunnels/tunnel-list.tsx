// The list of tunnels. Only the rows in sight are drawn, so that it stays quick however long it is; rows that come in
// above do not move what is looked at.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import { usePageTop } from '../../ui/hooks.ts';
import { moved, useKeys } from '../../ui/keyboard.ts';
import type { ListRow } from './address-rows.ts';
import { cellsOf, type RowActions, TunnelHead, TunnelRow, useRowPx } from './tunnel-row.tsx';

/** So many rows before the end more are asked for. */
const AHEAD = 30;
/** The navigation at the foot of a phone lies over the page. */
const FOOT_PX = 80;

export interface TunnelListProps extends RowActions {
  readonly rows: readonly ListRow[];
  readonly isWhole: boolean;
  /** Tunnels that were looked through for the rows. */
  readonly readCount: number;
  readonly onEndNear: () => void;
  /** Key of the address whose tunnels are listed. */
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
    // Asked again for each page that did not bring enough rows.
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

/** Keeps the first row in sight where it is when others appear above it. */
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

/** j, k and the arrows go from row to row. */
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
  // A row that was not drawn yet takes the focus when it is.
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
