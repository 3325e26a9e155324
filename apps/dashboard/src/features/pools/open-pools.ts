// Which pools show their members: small ones do, large ones when asked. What was chosen is remembered in this tab.
import type { GroupSummary } from '@tunnel/contract';
import { startTransition, useCallback, useState } from 'react';
import { poolKey } from './pools.ts';

/** A pool of more members is closed at first. */
export const FEW_MEMBERS = 5;

const STORED_AS = 'pools-open';
const REMEMBERED_MAX = 500;

/** By the key of a pool, oldest first: only what differs from the rule. */
export type Chosen = ReadonlyMap<string, boolean>;

export const isOpen = (group: GroupSummary, chosen: Chosen): boolean =>
  chosen.get(poolKey(group)) ?? group.member_count <= FEW_MEMBERS;

/** The oldest choices go when there are too many. */
export const choose = (chosen: Chosen, key: string, open: boolean): Chosen => {
  const others = [...chosen].filter(([other]) => other !== key);
  return new Map([...others, [key, open] as const].slice(-REMEMBERED_MAX));
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
    return new Map();
  }
};

export const readChosen = (text: string | null): Chosen => {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return new Map(
      Object.entries(value ?? {}).filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean'),
    );
  } catch {
    return new Map();
  }
};

const remember = (chosen: Chosen): void => {
  try {
    sessionStorage.setItem(STORED_AS, JSON.stringify(Object.fromEntries(chosen)));
  } catch {
    // It is remembered as long as the page.
  }
};
