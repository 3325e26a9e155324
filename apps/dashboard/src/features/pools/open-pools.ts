// Which pools show their members: small ones do, large ones when asked. What was chosen is remembered in this tab.
import type { GroupSummary } from '@tunnel/contract';
import { startTransition, useCallback, useState } from 'react';
import { poolKey } from './pools.ts';

/** A pool of more members is closed at first. */
export const FEW_MEMBERS = 5;

const STORED_AS = 'pools-open';
const REMEMBERED_MAX = 500;

/** Only what differs from the rule. */
export type Chosen = Readonly<Record<string, boolean>>;

export const isOpen = (group: GroupSummary, chosen: Chosen): boolean =>
  chosen[poolKey(group)] ?? group.member_count <= FEW_MEMBERS;

/** The oldest choices go when there are too many. */
export const choose = (chosen: Chosen, key: string, open: boolean): Chosen => {
  const { [key]: _before, ...rest } = chosen;
  return Object.fromEntries([...Object.entries(rest), [key, open] as const].slice(-REMEMBERED_MAX));
};

export const useOpenPools = (): { readonly chosen: Chosen; readonly setOpen: (key: string, open: boolean) => void } => {
  const [chosen, setChosen] = useState(recall);
  const setOpen = useCallback((key: string, open: boolean): void => {
    // Fifty rows take a while to draw; the page answers meanwhile.
    startTransition(() =>
      setChosen((before) => {
        const after = choose(before, key, open);
        remember(after);
        return after;
      }),
    );
  }, []);
  return { chosen, setOpen };
};

const recall = (): Chosen => {
  try {
    return readChosen(sessionStorage.getItem(STORED_AS));
  } catch {
    // Storage is off.
    return {};
  }
};

export const readChosen = (text: string | null): Chosen => {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter(([, open]) => typeof open === 'boolean')) as Chosen;
  } catch {
    return {};
  }
};

const remember = (chosen: Chosen): void => {
  try {
    sessionStorage.setItem(STORED_AS, JSON.stringify(chosen));
  } catch {
    // It is remembered as long as the page.
  }
};
