import { expect, it } from 'vitest';
import { z } from 'zod';
import { unreadableFault } from './unreadable.ts';

const reasonOf = (schema: z.ZodType, value: unknown): string =>
  unreadableFault(schema.safeParse(value).error?.issues[0], 'json').message;

const schema = z.object({ name: z.string().min(1).max(3), list: z.array(z.string()).max(2).optional() });

it.each([
  [{}, 'name: is missing'],
  [{ name: 1 }, 'name: must be a string, not number'],
  [{ name: '' }, 'name: must have at least 1 character'],
  [{ name: 'long' }, 'name: must have at most 3 characters'],
  [{ name: 'a', list: 1 }, 'list: must be an array, not number'],
  [{ name: 'a', list: ['', '', ''] }, 'list: must have at most 2 items'],
  [[], 'body: must be an object, not array'],
  [undefined, 'body: is missing'],
])('the body %j is refused: %s', (value, expected) => {
  expect(reasonOf(schema, value)).toContain(expected);
});

it('a custom message that begins with the field is kept', () => {
  const own = z.object({ limit: z.string().refine(() => false, { message: 'limit must be 1 to 100' }) });
  expect(reasonOf(own, { limit: '0' })).toMatch(/(^|[^:]) ?limit must be 1 to 100$/);
});
