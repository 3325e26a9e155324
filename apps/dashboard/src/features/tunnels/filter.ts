// Which tunnels are shown: the filter as the address of the page has it, and as the API takes it.
import { type ShownProtocol, shownProtocol, type TunnelState, tunnelState } from '@tunnel/contract';

export interface TunnelFilter {
  readonly protocol?: ShownProtocol;
  readonly state?: TunnelState;
}

export type StateChoice = TunnelState | 'all';
export type ProtocolChoice = ShownProtocol | 'all';

export const STATE_CHOICES = [
  { value: 'all', label: 'Any state' },
  { value: 'active', label: 'Live' },
  { value: 'closed', label: 'Ended' },
] as const satisfies readonly { value: StateChoice; label: string }[];

export const PROTOCOL_CHOICES = [
  { value: 'all', label: 'Any protocol' },
  { value: 'http', label: 'http' },
  { value: 'tcp', label: 'tcp' },
  { value: 'udp', label: 'udp' },
  { value: 'p2p', label: 'p2p' },
] as const satisfies readonly { value: ProtocolChoice; label: string }[];

/** What nobody knows is no filter: the address may be somebody's own. */
export const readFilter = (search: { readonly protocol?: string; readonly state?: string }): TunnelFilter => {
  const protocol = shownProtocol.safeParse(search.protocol).data;
  const state = tunnelState.safeParse(search.state).data;
  return { ...(protocol === undefined ? {} : { protocol }), ...(state === undefined ? {} : { state }) };
};

export const choose = (filter: TunnelFilter, chosen: { state?: StateChoice; protocol?: ProtocolChoice }) => {
  const { state = filter.state ?? 'all', protocol = filter.protocol ?? 'all' } = chosen;
  return readFilter({ state, protocol });
};
