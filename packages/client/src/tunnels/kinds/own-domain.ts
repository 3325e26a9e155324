// A host of one's own, as people type it and as names are compared everywhere else: in lower case, without a dot at its end, umlauts in their xn-- form.
import { domainToASCII } from 'node:url';

const ASCII = /^[\x20-\x7e]*$/;
/** The longest that a frame has room for; mapping takes time by the length. */
const MAPPED_MAX_UNITS = 300;

/** What is no host name stays as it is: whoever judges it has the words for it. */
export const asciiDomain = (typed: string): string => {
  const trimmed = typed.replace(/\.$/, '');
  if (ASCII.test(trimmed)) return trimmed.toLowerCase();
  if (trimmed.length > MAPPED_MAX_UNITS) return typed;
  const wildcard = trimmed.startsWith('*.') ? '*.' : '';
  const host = domainToASCII(trimmed.slice(wildcard.length));
  return host === '' ? typed : wildcard + host;
};
