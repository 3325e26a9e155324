// Entries of the dashboard's search: their ranking, and which entry stays selected while the list changes. Pure functions.
import type { OwnDomainView, TunnelLogEntry } from '@tunnel/contract';
import { addressOf } from '../../shared/tunnel-address.ts';
import type { NavPage } from './nav-pages.ts';

export type PaletteTarget =
  | { readonly to: NavPage['to'] }
  | { readonly to: '/tunnels/$id' | '/domains/$id'; readonly params: { readonly id: string } };

export interface PaletteEntry {
  readonly id: string;
  readonly label: string;
  /** Text to the right of the label, as in "Page" or "Tunnel on laptop". */
  readonly detail: string;
  /** Additional words that match the search entry. */
  readonly words: readonly string[];
  readonly target: PaletteTarget;
}

/** Creates the search entries: pages, then tunnels, then domains. */
export const paletteEntries = (
  pages: readonly NavPage[],
  tunnels: readonly TunnelLogEntry[],
  domains: readonly OwnDomainView[],
): readonly PaletteEntry[] => [
  ...pages.map(({ to, label }) => ({ id: `page ${to}`, label, detail: 'Page', words: [], target: { to } })),
  ...tunnels.map((entry) => ({
    id: `tunnel ${entry.id}`,
    // The scheme is left out, because it is the same for all HTTP tunnels and long addresses are truncated at the end.
    label: addressOf(entry).text.replace(/^https?:\/\//, ''),
    detail: entry.client_name === undefined ? 'Tunnel' : `Tunnel on ${entry.client_name}`,
    words: [entry.name ?? '', entry.label, entry.client_name ?? '', entry.protocol, entry.tunnel_id],
    target: { to: '/tunnels/$id' as const, params: { id: entry.id } },
  })),
  ...domains.map(({ id, name }) => ({
    id: `domain ${id}`,
    label: name,
    detail: 'Domain',
    words: [],
    target: { to: '/domains/$id' as const, params: { id } },
  })),
];

/**
 * Returns the entries that contain every word of the text. Entries with a label that begins with a word come first, then entries with a
 * part of the label that begins with a word.
 */
export const rankEntries = (entries: readonly PaletteEntry[], text: string): readonly PaletteEntry[] => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .flatMap((entry) => {
      const ranks = words.map((word) => rankOf(entry, word));
      return ranks.includes(null) ? [] : [{ entry, rank: ranks.reduce<number>((sum, rank) => sum + (rank ?? 0), 0) }];
    })
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ entry }) => entry);
};

/** Rank of an entry for a word, lower is better. Null if the entry does not contain the word. */
const rankOf = ({ label, words }: PaletteEntry, word: string): number | null => {
  const name = label.toLowerCase();
  if (name.startsWith(word)) return 0;
  if (name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word))) return 1;
  if (name.includes(word)) return 2;
  return words.some((other) => other.toLowerCase().includes(word)) ? 3 : null;
};

export interface Selected {
  readonly id: string;
  readonly index: number;
}

/** Returns the current index of the selected entry. If the entry has disappeared, its neighbor is selected. -1 if the list is empty. */
export const selectedIndex = (found: readonly PaletteEntry[], selected: Selected | null): number => {
  const index = found.findIndex(({ id }) => id === selected?.id);
  return index >= 0 ? index : Math.min(selected?.index ?? 0, found.length - 1);
};
