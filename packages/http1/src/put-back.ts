// Puts secrets back where an edited text still has the mark that people were shown: each by its name, in the order in which they stood.
import { REDACTED, type ReplaceSecret, redactBody, redactJson, redactUrl } from './redact.ts';

/** A text, or why it cannot be had: a mark without a stored value would reach the service as it stands. */
export type PutBack = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'problem' };

const PROBLEM: PutBack = { kind: 'problem' };

/** Of one stored text, by name. */
export class StoredSecrets {
  readonly #values = new Map<string, string[]>();

  add(name: string, value: string): void {
    const values = this.#values.get(name);
    if (values === undefined) this.#values.set(name, [value]);
    else values.push(value);
  }

  /** The next one of that name; undefined: there are no more. */
  take(name: string): string | undefined {
    return this.#values.get(name)?.shift();
  }
}

export const putBackInUrl = (edited: string, stored: string): PutBack =>
  putBack(edited, stored, (text, replace) => redactUrl(text, replace));

/** Both texts are decoded; `contentType` is the stored one's. */
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
  // A secret that breaks its text, as one without an end does: others after it would no longer be hidden.
  if (shown(text) !== shown(edited)) return PROBLEM;
  // A mark in another place, unless the text had one of its own.
  return isLost || (text.includes(REDACTED) && !stored.includes(REDACTED)) ? PROBLEM : { kind: 'text', text };
};

/** As a value of JSON it has quotes. */
const isMark = (value: string): boolean => value === REDACTED || value === `"${REDACTED}"`;
