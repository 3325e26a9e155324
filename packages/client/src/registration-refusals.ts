// What an edge is not asked for, and what answer of it is not taken: a tunnel that has rules is published with them or not at all.
import { Fault } from '@tunnel/errors';
import { CAPABILITY } from '@tunnel/protocol';
import { kindOf } from './forward/kinds.ts';
import type { TunnelEntry } from './tunnel.ts';

/** An older edge would read the registration as one of a kind that it knows, and publish without its rules what has rules. */
export const refusalOfAge = (
  tunnel: TunnelEntry,
  hasPolicy: boolean,
  capabilities: readonly string[],
): Fault | null => {
  const { capability } = kindOf(tunnel.protocol);
  if (capability !== null && !capabilities.includes(capability)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: tunnel.protocol });
  }
  // It would leave the domain out, and give the tunnel a name of its own choice.
  if (tunnel.spec.domain !== undefined && !capabilities.includes(CAPABILITY.TLS)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: 'own-domain' });
  }
  if (!hasPolicy || capabilities.includes(CAPABILITY.POLICY)) return null;
  return new Fault('POLICY_UNSUPPORTED', { name: tunnel.name });
};

const HASH_SHOWN_CHARS = 8;

/**
 * Whether what is in force is what was sent. A member of a group that comes back with its session is let in under the group's policy, which may be a
 * newer one: there any will do, but none.
 */
export const refusalOfHash = (
  { name, group, tunnelId }: TunnelEntry,
  sent: string | undefined,
  inForce: string | undefined,
  isBack: boolean,
): Fault | null => {
  if (sent === undefined || sent === inForce) return null;
  if (inForce === undefined) return new Fault('POLICY_UNSUPPORTED', { name });
  if (group !== null && isBack && tunnelId !== '') return null;
  const [theirs, ours] = [inForce, sent].map((hash) => hash.slice(0, HASH_SHOWN_CHARS));
  return new Fault('POLICY_INVALID', {
    reason: `the edge has another policy (${theirs}) than it was sent (${ours}): tunnel '${name}' was not opened`,
  });
};
