// Selection of a live tunnel by id, address, name or label.
import { Fault } from '@tunnel/errors';
import type { LiveTunnel } from './account-tunnels.ts';

/** Fields that identify a tunnel to a user. */
interface Named {
  readonly tunnel_id: string;
  readonly label: string;
  readonly name?: string | null | undefined;
  readonly public_url?: string | null | undefined;
}

/** Tunnels that match the user's text. If several tunnels match, the user must be more specific. */
export type TunnelChoice<T extends Named = LiveTunnel> =
  | { readonly kind: 'one'; readonly tunnel: T }
  | { readonly kind: 'several'; readonly tunnels: readonly T[]; readonly fault: Fault };

/** Finds the tunnel that matches the user's text. Throws if no tunnel matches. */
export const chooseTunnel = <T extends Named>(tunnels: readonly T[], wanted: string): TunnelChoice<T> => {
  const fitting = fittingTunnels(tunnels, wanted);
  const [only, ...others] = fitting;
  if (only === undefined) throw new Fault('CLIENT_TUNNEL_UNKNOWN', { tunnel: wanted });
  if (others.length === 0) return { kind: 'one', tunnel: only };
  const fault = new Fault('CLIENT_TUNNEL_AMBIGUOUS', { tunnel: wanted, count: fitting.length });
  return { kind: 'several', tunnels: fitting, fault };
};

/**
 * Returns all tunnels that match the user's text. An id belongs to one tunnel. Members of a group share an address, and tunnels on two
 * computers can have the same name.
 */
export const fittingTunnels = <T extends Named>(tunnels: readonly T[], wanted: string): readonly T[] => {
  const byId = tunnels.find(({ tunnel_id: id }) => id === wanted);
  if (byId !== undefined) return [byId];
  const address = addressOf(wanted);
  return tunnels.filter(
    ({ name, label, public_url: url }) =>
      name === wanted || label === wanted || (url != null && addressOf(url) === address),
  );
};

/** Normalizes a pasted address: drops trailing slashes and upper case. */
const addressOf = (text: string): string => text.replace(/\/+$/, '').toLowerCase();
