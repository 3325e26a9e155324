// Policy of a registration: validated before any endpoint is opened. Also builds the policy fields of the response.

import { Fault } from '@tunnel/errors';
import { policyHash } from '@tunnel/policy';
import type { MessageOf } from '@tunnel/protocol';
import { type Owner, ownerKey, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { sha256Hex } from '@tunnel/runtime';
import { groupPolicyWarning, type PolicyStamp } from '../routing/group-policy.rules.ts';
import type { BroughtPolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { judgePolicy } from './brought-policy.rules.ts';
import { type SessionTunnel } from './session-life.rules.ts';

export interface RegisteredPolicy extends BroughtPolicy {
  /** Hash of the policy as sent by the client, confirming that the edge has read it completely. Null if the client sent no policy. */
  readonly answeredHash: string | null;
}

/** State of the same tunnel before this registration. */
interface TunnelBefore {
  readonly known: SessionTunnel | undefined;
  /** Policy stamp of the tunnel's last registration. Undefined if there was none. */
  readonly brought: PolicyStamp | undefined;
}

/** Reads and validates the policy. Throws a fault if the edge rejects it. */
export const readPolicy = (
  request: MessageOf<'RegisterTunnel'>,
  protocol: TunnelProtocol,
  loginProviders: readonly string[],
  before: TunnelBefore,
  owner: Owner,
): RegisteredPolicy => {
  const { services = [], policy_revision: revision = 0, proxy_protocol: proxyProtocol } = request;
  const policy = judgePolicy({ policy: request.policy, services, proxyProtocol }, { protocol, loginProviders });
  if (policy instanceof Fault) throw policy;
  const answeredHash = policy === null && services.length === 0 ? null : policyHash(policy, services, sha256Hex);
  // Without a policy, services cannot receive requests, so group members need not agree on them.
  const stamp = { revision, hash: policy === null ? null : answeredHash };
  const registered = { ...stamp, isReturning: isReturning(before, stamp) };
  return { policy, services, stamp: registered, owner: ownerKey(owner), answeredHash };
};

/**
 * Whether the tunnel is registered again without a new policy: after a disconnect, after a change of connection, or because another setting
 * has changed. A tunnel with a new policy is treated as a new registration.
 */
const isReturning = ({ known, brought }: TunnelBefore, stamp: PolicyStamp): boolean => {
  if (known === undefined) return false;
  if (known.kind === 'held' || known.awaited !== null) return true;
  return brought?.revision === stamp.revision && brought.hash === stamp.hash;
};

/** Returns the field of the registration's response with the policy's hash. */
export const policyHashField = ({ answeredHash }: RegisteredPolicy): { readonly policy_hash?: string } =>
  answeredHash === null ? {} : { policy_hash: answeredHash };

export const policyWarnings = ({ group }: Tunnel, { stamp }: BroughtPolicy): string[] => {
  const warning = group === null ? null : groupPolicyWarning(group.policyStamp, stamp);
  return warning === null ? [] : [warning];
};
