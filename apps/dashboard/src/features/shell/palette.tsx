// The dashboard's search dialog. A text field filters a list of pages, live tunnels and custom domains, and arrow keys select an entry.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type PlatformClient, TUNNEL_LOG_LIMIT } from '@tunnel/contract';
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LIVE_MS, useIsBillingShown } from '../../api/queries.ts';
import { classNames } from '../../ui/class-names.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { inputClass } from '../../ui/field.tsx';
import { plural } from '../../ui/format.ts';
import { domainsQuery } from '../domains/own-domains.ts';
import { NAV_PAGES } from './nav-pages.ts';
import { type PaletteEntry, paletteEntries, rankEntries, type Selected, selectedIndex } from './palette-entries.ts';
import type { ShortcutDialogProps } from './shortcuts.tsx';

/** Maximum entries rendered. Typing another letter shortens the list. */
const SHOWN_MAX = 50;

const liveTunnelsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['palette-tunnels'],
    queryFn: () => api.tunnels({ state: 'active', limit: TUNNEL_LOG_LIMIT.max }),
    refetchInterval: LIVE_MS.tunnels,
  });

export const Palette = ({ onClose }: ShortcutDialogProps) => (
  <Dialog open onClose={onClose} title="Search">
    <Search onClose={onClose} />
  </Dialog>
);

const Search = ({ onClose }: ShortcutDialogProps) => {
  const navigate = useNavigate();
  const list = useId();
  const { entries, note } = useEntries();
  const [text, setText] = useState('');
  const [selected, setSelected] = useState<Selected | null>(null);
  const found = useMemo(() => rankEntries(entries, text).slice(0, SHOWN_MAX), [entries, text]);
  const index = selectedIndex(found, selected);
  const select = (next: number): void => {
    const entry = found.at(next % found.length);
    if (entry !== undefined) setSelected({ id: entry.id, index: found.indexOf(entry) });
  };
  const open = (entry: PaletteEntry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    void navigate(entry.target);
  };
  const onKey = (event: KeyboardEvent): void => {
    // While an input method composes a word, Enter only completes the word.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'ArrowDown') select(index + 1);
    else if (event.key === 'ArrowUp') select(index - 1);
    else if (event.key === 'Enter') open(found[index]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Search pages, tunnels and domains"
        aria-autocomplete="list"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-activedescendant={index < 0 ? undefined : optionId(list, index)}
        placeholder="Pages, tunnels and domains"
        value={text}
        autoComplete="off"
        autoCapitalize="none"
        autoCorrect="off"
        spellCheck={false}
        maxLength={200}
        className={inputClass}
        onChange={({ target }) => {
          setText(target.value);
          setSelected(null);
        }}
        onKeyDown={onKey}
      />
      <Found {...{ list, found, index }} onOpen={open} />
      <p role="status" className="text-muted text-sm">
        {found.length === 0 ? 'No matches.' : <span className="sr-only">{plural(found.length, 'result')}</span>} {note}
      </p>
    </>
  );
};

/** Returns the search entries. Pages are available immediately; tunnels and domains follow when the API has responded. */
const useEntries = (): { readonly entries: readonly PaletteEntry[]; readonly note: string } => {
  const api = useApi();
  const isBillingShown = useIsBillingShown();
  const tunnels = useQuery(liveTunnelsQuery(api));
  const domains = useQuery(domainsQuery(api));
  const entries = useMemo(() => {
    const pages = NAV_PAGES.filter(({ to }) => to !== '/billing' || isBillingShown === true);
    return paletteEntries(pages, tunnels.data ?? [], domains.data ?? []);
  }, [isBillingShown, tunnels.data, domains.data]);
  if (tunnels.isError || domains.isError) return { entries, note: "Couldn't load tunnels and domains." };
  return { entries, note: tunnels.isPending || domains.isPending ? 'Loading tunnels and domains.' : '' };
};

const optionId = (list: string, index: number): string => `${list}-${index}`;

interface FoundProps {
  /** Element ID of the list of results. */
  readonly list: string;
  readonly found: readonly PaletteEntry[];
  /** Index of the selected search result. */
  readonly index: number;
  readonly onOpen: (entry: PaletteEntry) => void;
}

/** List of results. The keyboard focus stays in the text field, which refers to the selected entry with an ARIA attribute. */
const Found = ({ list, found, index, onOpen }: FoundProps) => {
  const selected = useRef<HTMLDivElement>(null);
  const id = found[index]?.id;
  // New versions of Chromium return a promise here, and React would call a returned value as the cleanup.
  useEffect(() => {
    selected.current?.scrollIntoView({ block: 'nearest' });
  }, [id]);
  return (
    <div
      id={list}
      role="listbox"
      aria-label="Results"
      className={classNames('max-h-80 overflow-y-auto', found.length === 0 && 'hidden')}
    >
      {found.map((entry, at) => (
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the field has the keyboard
        <div
          key={entry.id}
          id={optionId(list, at)}
          ref={at === index ? selected : undefined}
          role="option"
          tabIndex={-1}
          aria-selected={at === index}
          onClick={() => onOpen(entry)}
          className={classNames(
            'flex cursor-pointer items-center justify-between gap-3 rounded-md px-3 py-2',
            at === index ? 'bg-accent-soft text-accent' : 'hover:bg-sunken',
          )}
        >
          <span className="min-w-0 truncate">{entry.label}</span>
          <span className={classNames('max-w-[40%] shrink-0 truncate text-sm', at !== index && 'text-muted')}>
            {entry.detail}
          </span>
        </div>
      ))}
    </div>
  );
};
