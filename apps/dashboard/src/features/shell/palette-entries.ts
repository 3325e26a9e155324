// What the search of the dashboard finds, in which order, and which entry stays selected while the list changes. Pure.
import type { OwnDomainView, TunnelLogEntry } from '@tunnel/contract';
import { addressOf } from '../../shared/tunnel-address.ts';
import type { NavPage } from './nav-pages.ts';

export type PaletteTarget =
  | { readonly to: NavPage['to'] }
  | { readonly to: '/tunnels/$id' | '/domains/$id'; readonly params: { readonly id: string } };

export interface PaletteEntry {
  readonly id: string;
  readonly label: string;
  /** Right of the label: "Page", "Tunnel on laptop". */
  readonly detail: string;
  /** Further words that find the entry. */
  readonly words: readonly string[];
  readonly target: PaletteTarget;
}

/** Pages, then tunnels, then domains. */
export const paletteEntries = (
  pages: readonly NavPage[],
  tunnels: readonly TunnelLogEntry[],
  domains: readonly OwnDomainView[],
): readonly PaletteEntry[] => [
  ...pages.map(({ to, label }) => ({ id: `page ${to}`, label, detail: 'Page', words: [], target: { to } })),
  ...tunnels.map((entry) => ({
    id: `tunnel ${entry.id}`,
    // Without the scheme, which all share: long addresses are cut at the end.
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

/** Entries that contain every word of the text. A label that begins with a word comes first, then one with a part that does. */
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

/** Lower is better; null: the entry does not have the word. */
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

/** Where the selected entry is now. One that has gone leaves its place to its neighbor. -1: the list is empty. */
export const selectedIndex = (found: readonly PaletteEntry[], selected: Selected | null): number => {
  const index = found.findIndex(({ id }) => id === selected?.id);
  return index >= 0 ? index : Math.min(selected?.index ?? 0, found.length - 1);
};
