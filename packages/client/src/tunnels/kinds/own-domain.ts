// Normalizes a custom domain: lower case, no trailing dot, international names in xn-- form.
import { domainToASCII } from 'node:url';

const ASCII = /^[\x20-\x7e]*$/;
/** Maximum length accepted by a frame. Longer names are not mapped, because mapping takes time. */
const MAPPED_MAX_UNITS = 300;

/** Returns the normalized domain. An invalid host name is returned unchanged, because a later check reports it. */
export const asciiDomain = (typed: string): string => {
  const trimmed = typed.replace(/\.$/, '');
  if (ASCII.test(trimmed)) return trimmed.toLowerCase();
  if (trimmed.length > MAPPED_MAX_UNITS) return typed;
  const wildcard = trimmed.startsWith('*.') ? '*.' : '';
  const host = domainToASCII(trimmed.slice(wildcard.length));
  return host === '' ? typed : wildcard + host;
};
