// Parses a form as sent in OAuth requests (RFC 6749, 3.2): fields by name, without repeated fields.
import { headerOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { PlatformEnv } from '../../shared/platform-env.ts';

/** Form fields by name. A field with an empty value counts as absent. */
export type FormFields = ReadonlyMap<string, string>;

export interface ReadForm {
  /** Error message for people. Null if the form is valid. */
  readonly problem: string | null;
  /** Fields of the form. Empty if the form is invalid. */
  readonly fields: FormFields;
}

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

export const readForm = async (context: Context<PlatformEnv>): Promise<ReadForm> => {
  if (!FORM.test(headerOf(context, 'content-type') ?? '')) {
    return unread('the body must be application/x-www-form-urlencoded');
  }
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(await context.req.text())) {
    if (value === '') continue;
    // A repeated field is ambiguous: one parser would take the first value, another the last. The name of the field comes from the caller
    // and is not quoted.
    if (fields.has(name)) return unread('a field is given twice');
    fields.set(name, value);
  }
  return { problem: null, fields };
};

const unread = (problem: string): ReadForm => ({ problem, fields: new Map() });
