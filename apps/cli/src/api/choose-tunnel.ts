// Which live tunnel a person means: by its id, its address, its name or its label.
import { Fault } from '@tunnel/errors';
import type { LiveTunnel } from './account-tunnels.ts';

/** What people call a tunnel by. */
interface Named {
  readonly tunnel_id: string;
  readonly label: string;
  readonly name?: string | null | undefined;
  readonly public_url?: string | null | undefined;
}

/** More than one: the person has to say more. */
export type TunnelChoice<T extends Named = LiveTunnel> =
  | { readonly kind: 'one'; readonly tunnel: T }
  | { readonly kind: 'several'; readonly tunnels: readonly T[]; readonly fault: Fault };

/** Throws when no tunnel fits. */
export const chooseTunnel = <T extends Named>(tunnels: readonly T[], wanted: string): TunnelChoice<T> => {
  const fitting = fittingTunnels(tunnels, wanted);
  const [only, ...others] = fitting;
  if (only === undefined) throw new Fault('CLIENT_TUNNEL_UNKNOWN', { tunnel: wanted });
  if (others.length === 0) return { kind: 'one', tunnel: only };
  const fault = new Fault('CLIENT_TUNNEL_AMBIGUOUS', { tunnel: wanted, count: fitting.length });
  return { kind: 'several', tunnels: fitting, fault };
};

/** An id is one tunnel's; the rest may be shared, by the members of a group, or by two computers that call theirs the same. */
export const fittingTunnels = <T extends Named>(tunnels: readonly T[], wanted: string): readonly T[] => {
  const byId = tunnels.find(({ tunnel_id: id }) => id === wanted);
  if (byId !== undefined) return [byId];
  const address = addressOf(wanted);
  return tunnels.filter(
    ({ name, label, public_url: url }) =>
      name === wanted || label === wanted || (url != null && addressOf(url) === address),
  );
};

/** As it is pasted: with or without a slash at its end. */
const addressOf = (text: string): string => text.replace(/\/+$/, '').toLowerCase();
