// Tunnels on own domains that changed hands: which of them end, and what their clients are told.
import { Fault } from '@tunnel/errors';
import type { DomainKeepers } from '../backend/names/verified-domains.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { Session } from './session.ts';

interface TunnelToEnd {
  readonly session: Session;
  readonly tunnelId: string;
  /** Final: its client does not register it again. */
  readonly fault: Fault;
}

/** All of them first: ending one changes what is looked at. */
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

/** null: it is no account's any more, so that the operator, who needs no proof, stays. A pool that the account is in lets others in by its key. */
const mayStay = ({ owner, group }: Tunnel, keeper: string | null): boolean => {
  if (keeper === null) return owner.kind === 'operator';
  if (owner.kind === 'account' && owner.accountId === keeper) return true;
  return group?.hasMemberOf({ kind: 'account', accountId: keeper }) === true;
};
