// The policy of one registration: judged before anything is opened, and what its client is told of it.
import {
  groupPolicyWarning,
  judgePolicy,
  type Owner,
  ownerKey,
  policyHash,
  type SessionTunnel,
  type TunnelProtocol,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { MessageOf } from '@tunnel/protocol';
import { sha256Hex } from '@tunnel/runtime';
import type { BroughtPolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';

export interface RegisteredPolicy extends BroughtPolicy {
  /** Of what its client sent, in every case: by it the client knows that the edge has read all of it. null: it sent nothing. */
  readonly answeredHash: string | null;
}

/** Throws when this edge does not take it. `known`: the same tunnel before. */
export const readPolicy = (
  request: MessageOf<'RegisterTunnel'>,
  protocol: TunnelProtocol,
  loginProviders: readonly string[],
  known: SessionTunnel | undefined,
  owner: Owner,
): RegisteredPolicy => {
  const { services = [], policy_revision: revision = 0, proxy_protocol: proxyProtocol } = request;
  const policy = judgePolicy({ policy: request.policy, services, proxyProtocol }, { protocol, loginProviders });
  if (policy instanceof Fault) throw policy;
  const isReturning = known !== undefined && isAwaited(known);
  if (policy === null && services.length === 0) {
    const stamp = { revision, hash: null, isReturning };
    return { policy, services, stamp, owner: ownerKey(owner), answeredHash: null };
  }
  const hash = policyHash(policy, services, sha256Hex);
  // Services that no rule can send anything to are nothing that members must agree on.
  const stamp = { revision, hash: policy === null ? null : hash, isReturning };
  return { policy, services, stamp, owner: ownerKey(owner), answeredHash: hash };
};

/** Its client was away, or changed its connection, and claims it again; a running one that registers again brings something new. */
const isAwaited = (known: SessionTunnel): boolean => known.kind === 'held' || known.awaited !== null;

/** What goes into the answer. */
export const policyHashField = ({ answeredHash }: RegisteredPolicy): { readonly policy_hash?: string } =>
  answeredHash === null ? {} : { policy_hash: answeredHash };

export const policyWarnings = ({ group }: Tunnel, { stamp }: BroughtPolicy): string[] => {
  const warning = group === null ? null : groupPolicyWarning(group.policyStamp, stamp);
  return warning === null ? [] : [warning];
};
