// Validation of a tunnel's group and health check. Client and edge share the checks, so that both reject the same values with the same
// messages.

import { Fault } from '@tunnel/errors';
import { foldSubdomain, problemOfSubdomain, shownText } from '@tunnel/rules/names';
import { isGroupProtocol, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { problemOfGroupName } from './names.ts';

export interface GroupFields {
  readonly group?: string | undefined;
  readonly group_key_hash?: string | undefined;
  readonly health_check?:
    | { readonly type?: 'tcp' | 'http' | undefined; readonly path?: string | undefined }
    | undefined;
}

const KEY_HASH = /^[0-9a-f]{64}$/;
const PROBE_PATH = /^\/[^\s\p{Cc}]*$/u;

/** Checks the group name, the hash of the group key and the health check of a tunnel. Returns null if the fields are valid. */
export const refuseGroupFields = ({ group, group_key_hash, health_check }: GroupFields): Fault | null => {
  if (group === undefined && group_key_hash !== undefined) return invalid('a group key needs a group');
  if (group !== undefined && group_key_hash === undefined) return invalid('a group needs a group key');
  if (group_key_hash !== undefined && !KEY_HASH.test(group_key_hash)) {
    return invalid('group_key_hash must be 64 lower-case hex digits');
  }
  const reason = group === undefined ? null : problemOfGroupName(group);
  if (reason !== null) return new Fault('GROUP_NAME_INVALID', { name: shownText(group ?? ''), reason });
  if (health_check?.type === 'http' && health_check.path === undefined) {
    return invalid('a health check of type http needs a path');
  }
  if (health_check?.path !== undefined && !PROBE_PATH.test(health_check.path)) {
    return invalid('the path of a health check must begin with / and contain no spaces or control characters');
  }
  return null;
};

/**
 * Rejects group and health check fields unsupported by the tunnel's protocol. Returns null if the protocol supports the fields, or if the
 * fields are absent. Call before `refuseGroupFields`.
 */
export const refuseGroupsOf = (
  protocol: TunnelProtocol,
  { group, group_key_hash, health_check }: GroupFields,
): Fault | null => {
  // The TLS service behind a tls tunnel cannot answer an unencrypted GET, so http health checks are rejected.
  if (protocol === 'tls' && health_check?.type === 'http')
    return invalid('tls tunnels support only health checks of type tcp');
  if (isGroupProtocol(protocol)) return null;
  if (group !== undefined || group_key_hash !== undefined) return invalid('groups exist for http and tcp tunnels only');
  return health_check === undefined ? null : invalid('health_check exists for http and tcp tunnels only');
};

/** Returns the subdomain of an http group: the requested subdomain, or else the group's name if the name is a valid subdomain. */
export const groupSubdomain = (
  group: string,
  subdomain: string | undefined,
  platformLabel?: string | null,
): string | Fault => {
  const wanted = subdomain ?? group;
  const reason = problemOfSubdomain(wanted, platformLabel);
  if (reason === null) return foldSubdomain(wanted);
  if (subdomain !== undefined) return new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: shownText(wanted), reason });
  return invalid(
    `group \`${shownText(group)}\` needs a subdomain, because its name is not a valid subdomain: ${reason}`,
  );
};

const invalid = (reason: string): Fault => new Fault('GROUP_FIELDS_INVALID', { reason });
