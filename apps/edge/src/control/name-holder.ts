// Finds the tunnel that has a refused name. The refusal names this tunnel and its computer only if the tunnel belongs to the account that asked, so that
// accounts learn nothing about each other.

import type { Fault } from '@tunnel/errors';
import type { ControlMessageInput } from '@tunnel/protocol';
import { type LeasedEndpoint, type Owner, sameOwner } from '@tunnel/rules/tunnels';
import { isGroup, type Registry } from '../routing/registry.ts';
import type { Tunnel } from '../routing/tunnel.ts';

type HeldBy = Extract<ControlMessageInput, { type: 'TunnelError' }>['held_by'];

/** The field `held_by` of a refusal, or no field unless a live tunnel of the same account has the name. */
export const heldByField = (
  tunnels: Pick<Registry, 'at'>,
  owner: Owner,
  fault: Fault,
): { readonly held_by?: HeldBy } => {
  for (const endpoint of endpointsOf(fault, owner)) {
    const holder = ownTunnelAt(tunnels, owner, endpoint);
    if (holder === undefined) continue;
    const { name, clientName } = holder;
    return { held_by: { name, ...(clientName === undefined ? {} : { client_name: clientName }) } };
  }
  return {};
};

/** The endpoints that the refused name can mean. Empty for a refusal by the platform, which carries no values: the tunnel is on another edge. */
const endpointsOf = ({ code, values }: Fault, owner: Owner): readonly LeasedEndpoint[] => {
  const { subdomain, domain, name } = values;
  if (code === 'TUNNEL_SUBDOMAIN_IN_USE' && subdomain !== undefined) return [{ kind: 'name', name: String(subdomain) }];
  if (code === 'TUNNEL_DOMAIN_IN_USE' && domain !== undefined) return [{ kind: 'domain', name: String(domain) }];
  if (code !== 'TUNNEL_P2P_NAME_IN_USE' || name === undefined) return [];
  const ofPeers = (account: string | null): LeasedEndpoint => ({ kind: 'peer-name', name: String(name), account });
  return owner.kind === 'account' ? [ofPeers(owner.accountId), ofPeers(null)] : [ofPeers(null)];
};

const ownTunnelAt = (tunnels: Pick<Registry, 'at'>, owner: Owner, endpoint: LeasedEndpoint): Tunnel | undefined => {
  const route = tunnels.at(endpoint);
  if (route === undefined) return undefined;
  if (!isGroup(route)) return sameOwner(route.owner, owner) ? route : undefined;
  if (!route.hasMemberOf(owner)) return undefined;
  for (const member of route.members()) if (sameOwner(member.owner, owner)) return member;
  return undefined;
};
