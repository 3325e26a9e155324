// Names of groups, p2p tunnels and services. Configuration, client and edge share these checks, so that the edge accepts a name that config.yml
// accepts. Labels and subdomains are in `rules/names`.
import { Fault } from '@tunnel/errors';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { foldSubdomain, isLabel, problemOfPlainName, problemOfText, shownText } from '@tunnel/rules/names';
import * as z from 'zod';

/** Says why a text cannot be the name of a group, or null. Metrics write name@label when two groups share a name, so `@` is not allowed. */
export const problemOfGroupName = (name: string): string | null =>
  problemOfText(name, RULE_LIMITS.GROUP_NAME_MAX_CHARS) ?? (name.includes('@') ? '@ is not allowed' : null);

export const groupName = () => {
  const error = `1 to ${RULE_LIMITS.GROUP_NAME_MAX_CHARS} printable characters without @`;
  return z.string({ error }).refine((name) => problemOfGroupName(name) === null, { error });
};

/** The p2p name in lower case, or the reason for its refusal. Grammar and reserved words are the same as for subdomains. */
export const parseP2pName = (name: string): string | Fault => {
  const reason = problemOfPlainName(name);
  if (reason === null) return foldSubdomain(name);
  return new Fault('TUNNEL_P2P_NAME_INVALID', { name: shownText(name), reason });
};

/** Lets reserved words pass: the edge refuses them with its reason. */
export const p2pName = () => {
  const error = '1 to 63 letters a-z, digits and inner hyphens';
  return z.string({ error }).refine((name) => isLabel(name.toLowerCase()), { error });
};

const SERVICE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const SERVICE_NAME_WORDS = '1 to 32 letters, digits, `.`, `_` and `-`';

/** Says why a text cannot be the name of a service that a policy routes to, or null. The wire has the same bound. */
export const problemOfServiceName = (name: string): string | null =>
  SERVICE_NAME.test(name) ? null : `use ${SERVICE_NAME_WORDS}`;

export const serviceName = () => z.string().regex(SERVICE_NAME);

/** The words for an invalid key of `services`. */
export const SERVICE_NAME_EXPECTED = `a name of ${SERVICE_NAME_WORDS}, a letter or digit first`;
