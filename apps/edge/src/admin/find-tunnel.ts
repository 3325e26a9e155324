// A tunnel by its id, for those who may see it.
import type { Owner } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Tunnel } from '../routing/tunnel.ts';
import { maySee } from './present-tunnel.ts';
import type { RestDependencies } from './rest-context.ts';

/** Another's tunnel is as unknown as none: its existence is nobody's business. */
export const findTunnel = ({ tunnels }: RestDependencies, caller: Owner, tunnelId: string): Tunnel => {
  const tunnel = tunnels.get(tunnelId);
  if (tunnel === undefined || !maySee(caller, tunnel)) throw new Fault('TUNNEL_UNKNOWN');
  return tunnel;
};
