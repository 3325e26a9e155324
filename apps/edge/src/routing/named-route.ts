// What a visitor of a name finds: the tunnel or group that has this very name, else the wildcard over it. A wildcard covers one label, as
// certificates do.
import { wildcardOver } from '@tunnel/core';
import type { Registry, Route } from './registry.ts';

/** `isHeld`: its client is away for a moment. The wildcard's service must not get meanwhile what is meant for it. */
export const routeAtName = (
  tunnels: Pick<Registry, 'at'>,
  name: string,
  isHeld: (name: string) => boolean = () => false,
): Route | undefined => {
  const exact = tunnels.at({ kind: 'name', name });
  if (exact !== undefined) return exact;
  const wildcard = wildcardOver(name);
  return wildcard === null || isHeld(name) ? undefined : tunnels.at({ kind: 'name', name: wildcard });
};
