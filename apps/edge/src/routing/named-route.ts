// What a visitor of a host finds: the tunnel or group that has this very name or own domain, else the wildcard over it. A wildcard covers one label, as
// certificates do.

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
  // Its client is away for a moment, or it is an own domain of somebody, maybe of another account than the wildcard: nobody else gets what is meant for it.
  if (wildcard === null || names.isHeld(endpoint)) return undefined;
  if (kind === 'domain' && reserved.accountOfDomain(name) !== null) return undefined;
  return tunnels.at({ kind, name: wildcard });
};

/** Its client comes back, in a moment or whenever its owner likes. Of a name that is only held by use nobody is told. */
export const isOfflineAt = ({ names, reserved }: HostSources, endpoint: HostEndpoint): boolean => {
  const { kind, name } = endpoint;
  const isKept = (one: string): boolean => kind === 'domain' && reserved.accountOfDomain(one) !== null;
  if (names.isHeld(endpoint) || isKept(name) || (kind === 'name' && reserved.isReserved(name))) return true;
  const wildcard = wildcardOver(name);
  return wildcard !== null && (names.isHeld({ kind, name: wildcard }) || isKept(wildcard));
};

/** The client of its tls tunnel is away: what comes for it is for that service alone. */
export const isHeldForTlsAt = ({ names }: Pick<HostSources, 'names'>, endpoint: HostEndpoint): boolean => {
  if (names.isHeld(endpoint)) return names.isHeldForTls(endpoint);
  const wildcard = wildcardOver(endpoint.name);
  return wildcard !== null && names.isHeldForTls({ kind: endpoint.kind, name: wildcard });
};
