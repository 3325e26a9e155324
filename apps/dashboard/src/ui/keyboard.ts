// Keys for a whole page: moving in its list, and leaving it. What is typed into a field stays there.
import { type RefObject, useEffect, useRef } from 'react';

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

/** Keys of every page. `isTyping`: the key goes into a field. null: another key. */
export const shortcutForKey = (
  { key, ctrlKey, metaKey, altKey }: KeyPress,
  isTyping: boolean,
): 'search' | 'keys' | null => {
  if (altKey) return null;
  if (ctrlKey !== metaKey) return key.toLowerCase() === 'k' ? 'search' : null;
  return key === '?' && !ctrlKey && !isTyping ? 'keys' : null;
};

/** How keyboards call the key that is held down for a shortcut. */
export const modifierName = (): string => (/mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘' : 'Ctrl');

/** Fields, menus and dialogs have keys of their own. */
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
/** Outside of the list these scroll the page. */
const ARROWS: Readonly<Record<string, Move>> = {
  ArrowDown: 'next',
  ArrowUp: 'previous',
  Home: 'first',
  End: 'last',
};

/** Which keys move within a list; what is done about it is the page's. null: another key. */
export const moveForKey = (press: KeyPress, isInList: boolean): Move | null => {
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  return LETTERS[press.key] ?? (isInList ? ARROWS[press.key] : undefined) ?? null;
};

/** `from` -1: nothing yet. null: there is nothing to move to. */
export const moved = (move: Move, from: number, count: number): number | null => {
  if (count === 0) return null;
  if (move === 'first') return 0;
  if (move === 'last') return count - 1;
  if (from < 0) return 0;
  return Math.min(count - 1, Math.max(0, from + (move === 'next' ? 1 : -1)));
};
