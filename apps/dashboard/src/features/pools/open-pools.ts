// Decides which groups show their members: small groups do so by default, large groups on request. The user's choices are stored in this
// browser tab.
import type { GroupSummary } from '@tunnel/contract';
import { startTransition, useCallback, useState } from 'react';
import { poolKey } from './pools.ts';

/** Largest group that shows its members by default. */
export const FEW_MEMBERS = 5;

const STORED_AS = 'pools-open';
const REMEMBERED_MAX = 500;

/** The user's choices by group key, oldest first. True shows the group's members, false hides them. */
export type Chosen = ReadonlyMap<string, boolean>;

export const isOpen = (group: GroupSummary, chosen: Chosen): boolean =>
  chosen.get(poolKey(group)) ?? group.member_count <= FEW_MEMBERS;

/** Adds a choice. The oldest choices are dropped once 500 are stored. */
export const choose = (chosen: Chosen, key: string, open: boolean): Chosen => {
  const others = [...chosen].filter(([other]) => other !== key);
  return new Map([...others, [key, open] as const].slice(-REMEMBERED_MAX));
};

export const useOpenPools = (): { readonly chosen: Chosen; readonly setOpen: (key: string, open: boolean) => void } => {
  const [chosen, setChosen] = useState(recall);
  const setOpen = useCallback((key: string, open: boolean): void => {
    // Rendering fifty rows takes a while. As a transition, the update does not block input.
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
    // Storage is disabled in this browser, so no choices are restored.
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
    // Storage is disabled in this browser, so the choices last until the page is closed.
  }
};
