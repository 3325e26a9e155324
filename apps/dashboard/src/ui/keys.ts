// Which keys of the keyboard move within a list. Pure: what is done about it is the page's.

export type Move = 'next' | 'previous' | 'first' | 'last';

export interface KeyPress {
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

export const moveOf = (press: KeyPress, isInList: boolean): Move | null => {
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
