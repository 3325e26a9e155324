// A registered tunnel of a connected client, as seen by the ingress, the relay and the REST API.

import type { MemberHealth, Owner, PublicEndpoint, TunnelProtocol } from '@tunnel/rules/tunnels';
import type { Service } from '../upstream/upstream-request.ts';
import type { PolicyStamp } from './group-policy.rules.ts';
import type { PolicyHolder } from './route-policy.ts';
import type { GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

export interface Tunnel extends GroupMember, Service {
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  /** Public endpoint at which visitors reach the tunnel. */
  readonly endpoint: PublicEndpoint;
  /** Group of the tunnel, or null if the tunnel is not in a group. */
  readonly group: TunnelGroup<Tunnel> | null;
  /**
   * Short name for users: the subdomain, the custom domain, the port as text, or the host of a tls tunnel. A member has the label of its
   * group.
   */
  readonly label: string;
  readonly publicUrl: string;
  /** Port of the tunnel, or the https port for a tls tunnel. Null if visitors need no port. */
  readonly assignedPort: number | null;
  /** Idle timeout for the flows of a udp tunnel; null for the edge's default. */
  readonly flowIdleSecs: number | null;
  readonly clientAddr: string;
  /** Name of the computer as reported by the client, if any. */
  readonly clientName?: string | undefined;
  readonly owner: Owner;
  /** Time of the first registration in milliseconds since the epoch. A reconnect keeps the time. */
  readonly connectedSince: number;
  /** Health as reported by the client. Affects only members of a group: a tunnel without a group gets visitors regardless of its health. */
  readonly health: MemberHealth;
  readonly alertWebhook: string | null;
  /** Holder of the policy that applies to visitors; a member shares the holder of its group. Read with `policyOf(route)`. */
  readonly policy: PolicyHolder;
  /**
   * Revision and hash of the policy that the client registered. For a member that waits for its turn in a rolling update, the group's
   * policy applies instead.
   */
  readonly broughtPolicy?: PolicyStamp | undefined;
  /**
   * PROXY protocol version written by the client of a tcp or tls tunnel, or null. Such a client needs the public address that the visitor
   * connected to.
   */
  readonly proxyProtocol: 'v1' | 'v2' | null;
}
