// Secrets in JSON bodies, by the names of their members. On the text, so that a body that was cut off is covered, too.
import { REDACTED } from './redact.ts';

/** Narrower than for forms: `code` and `key` alone are ordinary words of an API's JSON. */
const SECRET_MEMBER = /token|secret|passw(?:or)?d|passphrase|api[_-]?key|private[_-]?key|access[_-]?key|authorization/i;

// A member whose value is a string, another scalar, or a list without lists in it; each may be cut off at the end.
// The name is bounded: without that, a text of nothing but quotes would take the square of its length.
const MEMBER = /("((?:[^"\\]|\\.){1,100})"\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?$)|\[[^[\]]*(?:\]|$)|[^\s"[\]{},]+)/g;

export const redactJson = (contentType: string | null, text: string): string => {
  if (!/json|graphql/i.test(contentType ?? '')) return text;
  return text.replace(MEMBER, (whole, lead: string, name: string, value: string) => {
    if (!SECRET_MEMBER.test(unescaped(name)) || value === 'null') return whole;
    return `${lead}"${REDACTED}"`;
  });
};

/** `"to\u006ben"` is `token` to whoever reads the body. */
const unescaped = (name: string): string =>
  name.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
