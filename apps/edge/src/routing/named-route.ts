// Finds the route of a host: the tunnel or group with exactly this name or custom domain, otherwise the covering wildcard. As in
// certificates, a wildcard covers one label.

import { wildcardOver } from '@tunnel/rules/names';
import { type HostEndpoint } from '@tunnel/rules/tunnels';
import type { ReservedNames } from '../backend/names/reserved-names.ts';
import type { NameRegistry } from './endpoints.ts';
import type { Registry, Route } from './registry.ts';

export interface HostSources {
  readonly tunnels: Pick<Registry, 'at'>;
  readonly names: Pick<NameRegistry, 'isHeld' | 'isHeldForTls'>;
  readonly reserved: Pick<ReservedNames, 'isReserved' | 'accountOfDomain'>;
}

export const routeAtHost = ({ tunnels, names, reserved }: HostSources, endpoint: HostEndpoint): Route | undefined => {
  const exact = tunnels.at(endpoint);
  if (exact !== undefined) return exact;
  const { kind, name } = endpoint;
  const wildcard = wildcardOver(name);
  // The host's client is briefly offline, or the host is the custom domain of an account, possibly not the wildcard's account. The
  // wildcard must not receive visitors of this host.
  if (wildcard === null || names.isHeld(endpoint)) return undefined;
  if (kind === 'domain' && reserved.accountOfDomain(name) !== null) return undefined;
  return tunnels.at({ kind, name: wildcard });
};

/**
 * Returns true if the host belongs to a tunnel that is offline: the client disconnected a moment ago, or the owner has reserved the host.
 * A name that was used before but is not reserved counts as unknown.
 */
export const isOfflineAt = ({ names, reserved }: HostSources, endpoint: HostEndpoint): boolean => {
  const { kind, name } = endpoint;
  const isKept = (one: string): boolean => kind === 'domain' && reserved.accountOfDomain(one) !== null;
  if (names.isHeld(endpoint) || isKept(name) || (kind === 'name' && reserved.isReserved(name))) return true;
  const wildcard = wildcardOver(name);
  return wildcard !== null && (names.isHeld({ kind, name: wildcard }) || isKept(wildcard));
};

/**
 * Returns true if the host is held for a tls tunnel with an offline client. Connections to the host are meant only for the tunnel's
 * service, which ends TLS.
 */
export const isHeldForTlsAt = ({ names }: Pick<HostSources, 'names'>, endpoint: HostEndpoint): boolean => {
  if (names.isHeld(endpoint)) return names.isHeldForTls(endpoint);
  const wildcard = wildcardOver(endpoint.name);
  return wildcard !== null && names.isHeldForTls({ kind: endpoint.kind, name: wildcard });
};
