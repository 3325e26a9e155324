// Finds tunnels on custom domains that now belong to another account, with the faults for their clients.
import { Fault } from '@tunnel/errors';
import type { DomainKeepers } from '../backend/names/verified-domains.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { Session } from './session.ts';

interface TunnelToEnd {
  readonly session: Session;
  readonly tunnelId: string;
  /** Permanent fault, so that the client does not register the tunnel again. */
  readonly fault: Fault;
}

/** Returns the tunnels to close. Collected before any tunnel is closed, because closing a tunnel changes the collection. */
export const tunnelsOfOthers = (sessions: Iterable<Session>, keepers: DomainKeepers): readonly TunnelToEnd[] => {
  const found: TunnelToEnd[] = [];
  for (const session of sessions) {
    for (const tunnel of session.tunnels.values()) {
      const domain = domainOf(tunnel);
      const keeper = domain === null ? undefined : keepers.get(domain);
      if (domain === null || keeper === undefined || mayStay(tunnel, keeper)) continue;
      const { tunnelId } = tunnel;
      found.push({ session, tunnelId, fault: new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain }) });
    }
  }
  return found;
};

const domainOf = ({ endpoint, group }: Tunnel): string | null => {
  const at = group?.endpoint ?? endpoint;
  return at.kind === 'domain' ? at.name : null;
};

/**
 * Whether a tunnel may keep its domain. `keeper` is null if no account owns the domain; only the operator's tunnels stay, because the
 * operator needs no verification. Tunnels in a group with a member of the owner's account stay, because the group key admitted them.
 */
const mayStay = ({ owner, group }: Tunnel, keeper: string | null): boolean => {
  if (keeper === null) return owner.kind === 'operator';
  if (owner.kind === 'account' && owner.accountId === keeper) return true;
  return group?.hasMemberOf({ kind: 'account', accountId: keeper }) === true;
};
