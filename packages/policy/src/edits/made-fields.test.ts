import { PartField, roleOf } from '@tunnel/http1';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MadeFields } from './made-fields.ts';

it('a field is what a new one would be, whichever came before it', () => {
  const fields = new MadeFields(roleOf);
  const text = fc.constantFrom(
    'a',
    'B',
    'x-a',
    'X-A',
    'host',
    'x-real-ip',
    'X-Forwarded-For',
    ' 1 ',
    '',
    'v'.repeat(128),
    'v'.repeat(129),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { maxLength: 20 }), (pairs) => {
      for (const [name, value] of pairs) {
        const fresh = new PartField(name, value, roleOf(name));
        const { role, lower, nameLength, line, lineLength, given } = fields.of([name, value]);
        expect({ role, lower, nameLength, line, lineLength, given }).toEqual({
          ...{ role: fresh.role, lower: fresh.lower, nameLength: fresh.nameLength, line: fresh.line },
          ...{ lineLength: fresh.lineLength, given: fresh.given },
        });
        expect(fields.of([name, value])).toMatchObject({ name, value: fresh.value });
      }
    }),
    { numRuns: 200 },
  );
});

it('the same field is made once, and a long one is not kept', () => {
  const fields = new MadeFields(roleOf);
  expect(fields.of(['x-a', 'b'])).toBe(fields.of(['x-a', 'b']));
  const long = 'v'.repeat(129);
  expect(fields.of(['x-a', long])).not.toBe(fields.of(['x-a', long]));
});
