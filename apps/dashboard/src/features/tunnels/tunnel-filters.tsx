// The filter fields above the tunnel list. The page's URL contains their values.
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { Choice } from '../../ui/choice.tsx';
import { inputClass } from '../../ui/field.tsx';
import {
  changeFilter,
  type FilterChange,
  PROTOCOL_CHOICES,
  SEARCH_MAX,
  STATE_CHOICES,
  type TunnelFilter,
} from './tunnel-filter.ts';

export const TunnelFilters = ({ filter }: { readonly filter: TunnelFilter }) => {
  const navigate = useNavigate();
  const go = (chosen: FilterChange): void =>
    void navigate({ to: '/tunnels', search: changeFilter(filter, chosen), replace: true, resetScroll: true });
  return (
    <div className="mb-4 flex flex-wrap gap-x-6 gap-y-3">
      <SearchField asked={filter.q ?? ''} onSearch={(q) => go({ q })} />
      <Choice label="State" value={filter.state ?? 'all'} options={STATE_CHOICES} onChange={(state) => go({ state })} />
      <Choice
        label="Protocol"
        value={filter.protocol ?? 'all'}
        options={PROTOCOL_CHOICES}
        onChange={(protocol) => go({ protocol })}
      />
    </div>
  );
};

/** Pause in typing after which the URL changes, in milliseconds. */
const TYPING_PAUSE_MS = 200;

interface SearchFieldProps {
  /** The search words in the URL. */
  readonly asked: string;
  readonly onSearch: (words: string) => void;
}

const SearchField = ({ asked, onSearch }: SearchFieldProps) => {
  const [typed, setTyped] = useState(asked);
  // Searches that are not in the URL yet. If the URL's search comes from elsewhere, such as a link, it replaces the typed text.
  const sent = useRef<string[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    const index = sent.current.indexOf(asked);
    sent.current.splice(0, index + 1);
    if (index < 0) setTyped(asked);
  }, [asked]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (text: string): void => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      sent.current.push(text.trim());
      onSearch(text);
    }, TYPING_PAUSE_MS);
  };
  return (
    <input
      type="search"
      aria-label="Search tunnels"
      placeholder="Search by URL, name or computer"
      maxLength={SEARCH_MAX}
      value={typed}
      onChange={({ target }) => type(target.value)}
      className={`${inputClass} sm:max-w-72`}
    />
  );
};
