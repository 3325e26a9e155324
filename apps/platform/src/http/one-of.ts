// One of a few words in a query, or none: refused with its name, the choices and what was given.
import { z } from '@hono/zod-openapi';
import { shownValue } from './shown-value.ts';

export const oneOf = <const Choice extends string>(field: string, choices: readonly Choice[], description: string) =>
  z
    // Whatever it is, a repeated parameter too: the refusal is ours.
    .unknown()
    .optional()
    .transform((given, context): Choice | undefined => {
      if (given === undefined) return undefined;
      const choice = choices.find((each) => each === given);
      if (choice !== undefined) return choice;
      context.addIssue({
        code: 'custom',
        message: `${field} must be one of ${choices.join(', ')}, got '${shownValue(given)}'`,
      });
      return z.NEVER;
    })
    .openapi({ type: 'string', enum: [...choices], description, param: { required: false } });
