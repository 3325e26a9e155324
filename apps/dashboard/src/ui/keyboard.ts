// Keyboard shortcuts for a page: moving through its list, and leaving the page. Keys typed into a field are ignored.
import { type RefObject, useEffect, useRef } from 'react';

export interface PageKeys {
  /** List in which the arrow keys move. Outside the list, arrow keys scroll the page. */
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
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || isTaken(event.target)) return;
      const { list, onMove, onEscape } = latest.current;
      if (event.key === 'Escape') return onEscape?.();
      const isInList = event.target instanceof Node && list?.current?.contains(event.target) === true;
      const move = onMove === undefined ? null : moveForKey(event, isInList);
      if (move === null) return;
      event.preventDefault();
      onMove?.(move);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
};

/**
 * Returns the shortcut that works on every page for a key press. `isTyping` is true if a field has the focus. Null if the key is not a
 * shortcut.
 */
export const shortcutForKey = (
  { key, ctrlKey, metaKey, altKey }: KeyPress,
  isTyping: boolean,
): 'search' | 'keys' | null => {
  if (altKey) return null;
  if (ctrlKey !== metaKey) return key.toLowerCase() === 'k' ? 'search' : null;
  return key === '?' && !ctrlKey && !isTyping ? 'keys' : null;
};

/** Returns the name of the modifier key for shortcuts: ⌘ on Apple devices, Ctrl elsewhere. */
export const modifierName = (): string => (/mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘' : 'Ctrl');

/** Returns whether an element handles keys itself, such as a field, a menu or a dialog. */
export const isTaken = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest('input, textarea, select, dialog, [role=menu], [contenteditable]') !== null;

type Move = 'next' | 'previous' | 'first' | 'last';

interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}

const LETTERS: Readonly<Record<string, Move>> = { j: 'next', k: 'previous' };
/** Keys that move only while the list has the focus. Elsewhere, the keys scroll the page. */
const ARROWS: Readonly<Record<string, Move>> = {
  ArrowDown: 'next',
  ArrowUp: 'previous',
  Home: 'first',
  End: 'last',
};

/** Returns the move within a list for a key press. Null if the key does not move. */
export const moveForKey = (press: KeyPress, isInList: boolean): Move | null => {
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  return LETTERS[press.key] ?? (isInList ? ARROWS[press.key] : undefined) ?? null;
};

/** Returns the index after a move. A `from` of -1 means that no item is selected. Null if the list is empty. */
export const moved = (move: Move, from: number, count: number): number | null => {
  if (count === 0) return null;
  if (move === 'first') return 0;
  if (move === 'last') return count - 1;
  if (from < 0) return 0;
  return Math.min(count - 1, Math.max(0, from + (move === 'next' ? 1 : -1)));
};
