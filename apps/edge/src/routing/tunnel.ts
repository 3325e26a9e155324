// One registered, living tunnel, as ingress, relay and the REST see it.

import type { MemberHealth, Owner, PublicEndpoint, TunnelProtocol } from '@tunnel/rules/tunnels';
import type { Service } from '../upstream/upstream-request.ts';
import type { PolicyStamp } from './group-policy.rules.ts';
import type { PolicyHolder } from './route-policy.ts';
import type { GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

export interface Tunnel extends GroupMember, Service {
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  /** Where the public reaches it. */
  readonly endpoint: PublicEndpoint;
  /** null: it stands alone. */
  readonly group: TunnelGroup<Tunnel> | null;
  /** What people call it: the subdomain, the own domain, the port as a string, or of a tls tunnel its host; a member has its group's. */
  readonly label: string;
  readonly publicUrl: string;
  /** Its own, or of a tls tunnel the https port; null: nobody has to know one. */
  readonly assignedPort: number | null;
  /** Of a udp tunnel: how long a flow may be silent; null: as the edge has it. */
  readonly flowIdleSecs: number | null;
  readonly clientAddr: string;
  /** What the client calls its computer; undefined: it does not say. */
  readonly clientName?: string | undefined;
  readonly owner: Owner;
  /** Milliseconds since the epoch. */
  readonly connectedSince: number;
  /** What its client reports. It concerns only members: a tunnel that stands alone is served whatever its health. */
  readonly health: MemberHealth;
  readonly alertWebhook: string | null;
  /** What its visitors meet first; a member has its group's. Read it through `policyOf(route)`. */
  readonly policy: PolicyHolder;
  /** What its client brought; a member that waits for its turn in a roll is served under another one, its group's. */
  readonly broughtPolicy?: PolicyStamp | undefined;
  /** Of a tcp or tls tunnel whose client writes the PROXY protocol: it wants to know the public address that a visitor reached. */
  readonly proxyProtocol: 'v1' | 'v2' | null;
}
