// Groups for tests of routes and metrics: the real group driver and rules, without ports, names or clients.

import { MemberHealth, type Owner, type ProbeKind } from '@tunnel/rules/tunnels';
import { type Clock, createLogger } from '@tunnel/runtime';
import { countersOf } from '../backend/tunnel-counters.fixture.ts';
import type { EndpointRegistry } from '../routing/endpoints.ts';
import { GroupDirectory } from '../routing/group-directory.rules.ts';
import { NO_POLICY_STAMP } from '../routing/group-policy.rules.ts';
import { Groups, type GroupWatcher, type Joined } from '../routing/groups.ts';
import type { Registry } from '../routing/registry.ts';
import { NO_POLICY, type PolicyKeeper } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { MuxUpstream } from '../upstream/upstream.ts';

export const OPERATOR: Owner = { kind: 'operator' };
export const ALICE: Owner = { kind: 'account', accountId: 'alice' };
export const BOB: Owner = { kind: 'account', accountId: 'bob' };

const OPEN_TO_ALL: PolicyKeeper = {
  hold: () => NO_POLICY,
  replace: () => {},
  release: () => {},
  forget: () => {},
};

export const KEY_HASH = '0123abcd'.repeat(8);

export interface MemberOptions {
  readonly group?: string;
  readonly protocol?: 'http' | 'https' | 'tcp' | 'tls';
  /** For http groups: the subdomain. */
  readonly label?: string;
  readonly keyHash?: string;
  readonly kind?: ProbeKind | null;
  readonly alertWebhook?: string;
  readonly clientName?: string;
}

export class GroupStage {
  readonly directory = new GroupDirectory<Tunnel>();
  readonly tunnels: Map<string, Tunnel>;
  readonly #groups: Groups;
  #nextPort = 20_000;

  constructor(clock: Clock, watchers: readonly GroupWatcher[], tunnels = new Map<string, Tunnel>()) {
    this.tunnels = tunnels;
    const endpoints = {
      names: { openAt: () => {}, reassign: () => {} },
      open: () => Promise.resolve({ kind: 'port', transport: 'tcp', port: this.#nextPort++ }),
      close: () => {},
      release: () => {},
    } as unknown as EndpointRegistry;
    const logger = createLogger({ level: 'silent', format: 'json' });
    const table = { groups: this.directory } as unknown as Registry;
    this.#groups = new Groups({
      domain: 'localhost',
      clock,
      logger,
      endpoints,
      tunnels: table,
      policies: OPEN_TO_ALL,
      watchers,
    });
  }

  async join(tunnelId: string, owner: Owner, wanted: MemberOptions = {}): Promise<Tunnel> {
    const { group = 'web', protocol = 'http', label = group, keyHash = KEY_HASH } = wanted;
    const endpoint =
      protocol === 'tcp'
        ? { kind: 'port' as const, transport: 'tcp' as const }
        : { kind: 'name' as const, name: label };
    const joined = await this.#groups.join({
      wanted: { protocol, name: group, keyHash, endpoint } as never,
      owner,
      policy: { policy: null, services: [], stamp: { ...NO_POLICY_STAMP, isReturning: false }, owner: 'operator' },
      former: null,
      isCurrent: () => true,
      makeMember: (begun) => memberOf(begun, tunnelId, owner, wanted),
      onJoined: (member) => void this.tunnels.set(tunnelId, member),
    });
    return (joined as Joined).tunnel;
  }

  leave(member: Tunnel): void {
    this.tunnels.delete(member.tunnelId);
    this.#groups.leave(member);
  }

  healthy(member: Tunnel): void {
    this.#groups.reportHealthy(member);
  }

  unhealthy(member: Tunnel, reason = 'connection refused'): void {
    this.#groups.reportUnhealthy(member, { reason, consecutiveFailures: 3 });
  }
}

const memberOf = (
  group: TunnelGroup<Tunnel>,
  tunnelId: string,
  owner: Owner,
  { kind = 'http', alertWebhook, clientName }: MemberOptions,
): Tunnel => ({
  tunnelId,
  sessionId: `ses_${tunnelId}`,
  name: tunnelId,
  protocol: group.protocol,
  label: group.label,
  publicUrl: group.protocol === 'tcp' ? `tcp://localhost:${group.label}` : `http://${group.label}.localhost:8000`,
  endpoint: { kind: 'member', groupId: group.groupId },
  group,
  assignedPort: group.protocol === 'tcp' ? Number(group.label) : null,
  http: group.protocol === 'tcp' ? null : { hostHeader: null, localProtocol: 'http1', capture: true },
  flowIdleSecs: null,
  clientAddr: '127.0.0.1:5000',
  clientName,
  owner,
  connectedSince: Date.UTC(2030, 0, 1),
  counters: countersOf(3, 4096),
  health: new MemberHealth(kind),
  alertWebhook: alertWebhook ?? null,
  policy: group.policy,
  proxyProtocol: null,
  upstream: new MuxUpstream(),
});
