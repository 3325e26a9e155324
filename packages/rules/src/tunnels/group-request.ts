// What a registration says about a group and about health: whether it makes sense, in the words of the one who wrote it.

import { Fault } from '@tunnel/errors';
import { RULE_LIMITS } from '../limits.ts';
import { foldSubdomain, problemOfSubdomain, problemOfText, shownText } from '../names/names.ts';
import { isGroupProtocol, type TunnelProtocol } from './tunnel-protocols.ts';

export interface GroupFields {
  readonly group?: string | undefined;
  readonly groupKeyHash?: string | undefined;
  readonly healthCheck?: { readonly type?: 'tcp' | 'http' | undefined; readonly path?: string | undefined } | undefined;
}

const KEY_HASH = /^[0-9a-f]{64}$/;
const PROBE_PATH = /^\/[^\s\p{Cc}]*$/u;

/** null: a valid name. */
const problemOfGroupName = (name: string): string | null =>
  // Metrics write name@label when two groups share a name.
  problemOfText(name, RULE_LIMITS.GROUP_NAME_MAX_CHARS) ?? (name.includes('@') ? 'it has an @' : null);

/** null: nothing to object to. */
export const refuseGroupFields = ({ group, groupKeyHash, healthCheck }: GroupFields): Fault | null => {
  if (group === undefined && groupKeyHash !== undefined) return invalid('a group key goes with a group');
  if (group !== undefined && groupKeyHash === undefined) return invalid('a group needs a group key');
  if (groupKeyHash !== undefined && !KEY_HASH.test(groupKeyHash)) {
    return invalid('group_key_hash must be 64 lower-case hex digits');
  }
  const reason = group === undefined ? null : problemOfGroupName(group);
  if (reason !== null) return new Fault('GROUP_NAME_INVALID', { name: shownText(group ?? ''), reason });
  if (healthCheck?.type === 'http' && healthCheck.path === undefined) {
    return invalid('a health check of type http needs a path');
  }
  if (healthCheck?.path !== undefined && !PROBE_PATH.test(healthCheck.path)) {
    return invalid('the path of a health check begins with / and has no spaces or control characters');
  }
  return null;
};

/** null: the protocol has groups and such probes, or nothing is said about any. Comes before `refuseGroupFields`. */
export const refuseGroupsOf = (
  protocol: TunnelProtocol,
  { group, groupKeyHash, healthCheck }: GroupFields,
): Fault | null => {
  // A GET in clear is nothing that a service behind tls could answer.
  if (protocol === 'tls' && healthCheck?.type === 'http')
    return invalid('a health check of a tls tunnel is of type tcp');
  if (isGroupProtocol(protocol)) return null;
  if (group !== undefined || groupKeyHash !== undefined) return invalid('groups exist for http and tcp tunnels only');
  return healthCheck === undefined ? null : invalid('health_check exists for http and tcp tunnels only');
};

/** The subdomain of an http group: the one that was asked for, or the group's name where it can be one. */
export const groupSubdomain = (
  group: string,
  subdomain: string | undefined,
  platformLabel?: string | null,
): string | Fault => {
  const wanted = subdomain ?? group;
  const reason = problemOfSubdomain(wanted, platformLabel);
  if (reason === null) return foldSubdomain(wanted);
  if (subdomain !== undefined) return new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: shownText(wanted), reason });
  return invalid(`group \`${shownText(group)}\` needs a subdomain, because its name cannot be one: ${reason}`);
};

const invalid = (reason: string): Fault => new Fault('GROUP_FIELDS_INVALID', { reason });
