// Restores secrets in a text that a user has edited. The user saw a mark instead of each secret; a mark is replaced by the stored secret
// of the same name, in the order of the stored text.
import { REDACTED, type ReplaceSecret, redactBody, redactJson, redactUrl } from './redact.ts';

/** The restored text, or a problem if a mark has no stored secret. Such a mark would otherwise be sent to the service. */
export type PutBack = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'problem' };

const PROBLEM: PutBack = { kind: 'problem' };

/** Secrets of a stored text, by name. */
export class StoredSecrets {
  readonly #values = new Map<string, string[]>();

  add(name: string, value: string): void {
    const values = this.#values.get(name);
    if (values === undefined) this.#values.set(name, [value]);
    else values.push(value);
  }

  /** Removes and returns the next secret with a name, or undefined if there are no more. */
  take(name: string): string | undefined {
    return this.#values.get(name)?.shift();
  }
}

export const putBackInUrl = (edited: string, stored: string): PutBack =>
  putBack(edited, stored, (text, replace) => redactUrl(text, replace));

/** Restores secrets in an edited body. Both bodies must be decoded; `contentType` is the type of the stored body. */
export const putBackInBody = (contentType: string | null, edited: string, stored: string): PutBack =>
  putBack(edited, stored, (text, replace) =>
    redactJson(contentType, redactBody(contentType, text, replace), (name, value) => replace(name, value)),
  );

const putBack = (edited: string, stored: string, walk: (text: string, replace: ReplaceSecret) => string): PutBack => {
  if (!edited.includes(REDACTED)) return { kind: 'text', text: edited };
  const secrets = new StoredSecrets();
  walk(stored, (name, value) => {
    secrets.add(name, value);
    return value;
  });
  let isLost = false;
  const text = walk(edited, (name, value) => {
    if (!isMark(value)) return value;
    const secret = secrets.take(name);
    isLost ||= secret === undefined;
    return secret ?? value;
  });
  const shown = (whole: string): string => walk(whole, () => REDACTED);
  // Check that the same secrets are hidden afterwards. A secret that was cut off, such as a string without its closing quote, would
  // change the structure of the text and expose later secrets.
  if (shown(text) !== shown(edited)) return PROBLEM;
  // A remaining mark is an error, unless the stored text itself contained the mark.
  return isLost || (text.includes(REDACTED) && !stored.includes(REDACTED)) ? PROBLEM : { kind: 'text', text };
};

/** Returns true for a mark. As a JSON value, the mark is in quotes. */
const isMark = (value: string): boolean => value === REDACTED || value === `"${REDACTED}"`;
