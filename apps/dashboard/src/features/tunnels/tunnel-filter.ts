// Filter of the tunnel list by state, protocol and search words, as stored in the page's URL. Pure functions.
import { type ShownProtocol, type TunnelLogEntry, type TunnelState, tunnelState } from '@tunnel/contract';
import { addressOf, kindOf, type TunnelKind } from '../../shared/tunnel-address.ts';

export interface TunnelFilter {
  readonly protocol?: TunnelKind;
  readonly state?: TunnelState;
  /** Search words. Absent if the user is not searching. */
  readonly q?: string;
}

type StateChoice = TunnelState | 'all';
type ProtocolChoice = TunnelKind | 'all';

export const STATE_CHOICES = [
  { value: 'all', label: 'Any state' },
  { value: 'active', label: 'Live' },
  { value: 'closed', label: 'Ended' },
] as const satisfies readonly { value: StateChoice; label: string }[];

export const PROTOCOL_CHOICES = [
  { value: 'all', label: 'Any' },
  { value: 'http', label: 'HTTP' },
  { value: 'tcp', label: 'TCP' },
  { value: 'tls', label: 'TLS' },
  { value: 'udp', label: 'UDP' },
  { value: 'p2p', label: 'P2P' },
] as const satisfies readonly { value: ProtocolChoice; label: string }[];

const isKind = (value: string | undefined): value is TunnelKind =>
  value !== 'all' && PROTOCOL_CHOICES.some((choice) => choice.value === value);

/** Maximum length of a search in the URL, in characters. */
export const SEARCH_MAX = 200;

interface FilterFields {
  readonly protocol?: string | undefined;
  readonly state?: string | undefined;
  readonly q?: string | undefined;
}

/** Reads a filter from URL parameters. Unknown values are ignored, because users can edit URLs. */
export const readFilter = (fields: FilterFields): TunnelFilter => {
  const state = tunnelState.safeParse(fields.state).data;
  const q = fields.q?.slice(0, SEARCH_MAX).trim() ?? '';
  return {
    ...(isKind(fields.protocol) ? { protocol: fields.protocol } : {}),
    ...(state === undefined ? {} : { state }),
    ...(q === '' ? {} : { q }),
  };
};

export interface FilterChange {
  readonly state?: StateChoice;
  readonly protocol?: ProtocolChoice;
  readonly q?: string;
}

export const changeFilter = (filter: TunnelFilter, chosen: FilterChange): TunnelFilter =>
  readFilter({ ...filter, ...chosen });

export const isFiltered = ({ protocol, state, q }: TunnelFilter): boolean =>
  protocol !== undefined || state !== undefined || q !== undefined;

/** Returns the protocol to request from the API, which lists TLS tunnels as TCP tunnels. */
export const askedProtocol = (kind: TunnelKind | undefined): ShownProtocol | undefined =>
  kind === 'tls' ? 'tcp' : kind;

/**
 * Applies the parts of a filter that the API does not support: distinguishing TLS from TCP, and search words. A tunnel must contain every
 * search word.
 */
export const filterTunnels = (
  entries: readonly TunnelLogEntry[],
  { protocol, q = '' }: TunnelFilter,
): readonly TunnelLogEntry[] => {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const isTcp = askedProtocol(protocol) === 'tcp';
  if (words.length === 0 && !isTcp) return entries;
  return entries.filter(
    (entry) => (!isTcp || kindOf(entry) === protocol) && words.every((word) => textOf(entry).includes(word)),
  );
};

const textOf = (entry: TunnelLogEntry): string =>
  [addressOf(entry).text, entry.name, entry.client_name, entry.tunnel_id, entry.label, kindOf(entry), entry.region_id]
    .join(' ')
    .toLowerCase();
