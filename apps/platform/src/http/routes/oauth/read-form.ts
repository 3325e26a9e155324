// A form as OAuth sends one (RFC 6749, 3.2): its fields by name, each at most once.
import { headerOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { PlatformEnv } from '../../shared/platform-env.ts';

/** A field without a value is none. */
export type FormFields = ReadonlyMap<string, string>;

export interface ReadForm {
  /** For people; null: it can be read. */
  readonly problem: string | null;
  /** None of one that cannot be read. */
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
    // One reader would take the first and another the last. Its name is a stranger's word, and not said again.
    if (fields.has(name)) return unread('a field is given twice');
    fields.set(name, value);
  }
  return { problem: null, fields };
};

const unread = (problem: string): ReadForm => ({ problem, fields: new Map() });
