// Names of groups, p2p tunnels and services. Configuration, client and edge share these checks, so that the edge accepts every name
// accepted in config.yml. Labels and subdomains are in `rules/names`.
import { Fault } from '@tunnel/errors';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { foldSubdomain, isLabel, problemOfPlainName, problemOfText, shownText } from '@tunnel/rules/names';
import * as z from 'zod';

/**
 * Returns the reason why a text cannot be a group name, or null for a valid name. `@` is not allowed, because metrics write name@label
 * when two groups share a name.
 */
export const problemOfGroupName = (name: string): string | null =>
  problemOfText(name, RULE_LIMITS.GROUP_NAME_MAX_CHARS) ?? (name.includes('@') ? '@ is not allowed' : null);

export const groupName = () => {
  const error = `1 to ${RULE_LIMITS.GROUP_NAME_MAX_CHARS} printable characters without @`;
  return z.string({ error }).refine((name) => problemOfGroupName(name) === null, { error });
};

/**
 * Returns the p2p name in lower case, or a fault with the reason for the rejection. Grammar and reserved words are the same as for
 * subdomains.
 */
export const parseP2pName = (name: string): string | Fault => {
  const reason = problemOfPlainName(name);
  if (reason === null) return foldSubdomain(name);
  return new Fault('TUNNEL_P2P_NAME_INVALID', { name: shownText(name), reason });
};

/** Schema of a p2p name. Reserved words are accepted here, because the edge rejects them with a reason. */
export const p2pName = () => {
  const error = '1 to 63 letters a-z, digits and inner hyphens';
  return z.string({ error }).refine((name) => isLabel(name.toLowerCase()), { error });
};

const SERVICE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const SERVICE_NAME_WORDS = '1 to 32 letters, digits, `.`, `_` and `-`';

/**
 * Returns the reason why a text cannot be the name of a service in a policy's `route`, or null for a valid name. The wire protocol has
 * the same limit.
 */
export const problemOfServiceName = (name: string): string | null =>
  SERVICE_NAME.test(name) ? null : `use ${SERVICE_NAME_WORDS}`;

export const serviceName = () => z.string().regex(SERVICE_NAME);

/** Error text for an invalid key of the `services` table. */
export const SERVICE_NAME_EXPECTED = `a name of ${SERVICE_NAME_WORDS}, a letter or digit first`;
