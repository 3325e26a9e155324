// Keys for a whole page: moving in its list, and leaving it. What is typed into a field stays there.
import { type RefObject, useEffect, useRef } from 'react';
import { type Move, moveOf } from './keys.ts';

export interface PageKeys {
  /** The list that the arrows are for. */
  readonly list?: RefObject<HTMLElement | null>;
  readonly onMove?: (move: Move) => void;
  readonly onEscape?: () => void;
}

export const useKeys = (keys: PageKeys): void => {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const hear = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || isTaken(event.target)) return;
      const { list, onMove, onEscape } = latest.current;
      if (event.key === 'Escape') return onEscape?.();
      const isInList = event.target instanceof Node && list?.current?.contains(event.target) === true;
      const move = onMove === undefined ? null : moveOf(event, isInList);
      if (move === null) return;
      event.preventDefault();
      onMove?.(move);
    };
    document.addEventListener('keydown', hear);
    return () => document.removeEventListener('keydown', hear);
  }, []);
};

/** Fields, menus and dialogs have keys of their own. */
const isTaken = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest('input, textarea, select, dialog, [role=menu], [contenteditable]') !== null;
