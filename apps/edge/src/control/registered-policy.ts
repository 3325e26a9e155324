// The policy of one registration: judged before anything is opened, and what its client is told of it.

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
  /** Of what its client sent, in every case: by it the client knows that the edge has read all of it. null: it sent nothing. */
  readonly answeredHash: string | null;
}

/** The same tunnel before; undefined: there was none. */
interface TunnelBefore {
  readonly known: SessionTunnel | undefined;
  /** With its last registration. */
  readonly brought: PolicyStamp | undefined;
}

/** Throws when this edge does not take it. */
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
  // Services that no rule can send anything to are nothing that members must agree on.
  const stamp = { revision, hash: policy === null ? null : answeredHash };
  const registered = { ...stamp, isReturning: isReturning(before, stamp) };
  return { policy, services, stamp: registered, owner: ownerKey(owner), answeredHash };
};

/**
 * Its client was away, or changed its connection, and claims it again; or it runs and says again what it said before, because something else of it
 * has changed. One that brings something new is judged by that.
 */
const isReturning = ({ known, brought }: TunnelBefore, stamp: PolicyStamp): boolean => {
  if (known === undefined) return false;
  if (known.kind === 'held' || known.awaited !== null) return true;
  return brought?.revision === stamp.revision && brought.hash === stamp.hash;
};

/** What goes into the answer. */
export const policyHashField = ({ answeredHash }: RegisteredPolicy): { readonly policy_hash?: string } =>
  answeredHash === null ? {} : { policy_hash: answeredHash };

export const policyWarnings = ({ group }: Tunnel, { stamp }: BroughtPolicy): string[] => {
  const warning = group === null ? null : groupPolicyWarning(group.policyStamp, stamp);
  return warning === null ? [] : [warning];
};
