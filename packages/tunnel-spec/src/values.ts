// Schemas for kinds of option values. The error text of each schema names the expected value and ends the error message.
import * as z from 'zod';

/** Marks a schema as concealed, so that error messages never show its values. */
export const conceal = <S extends z.ZodType>(schema: S): S => schema.meta({ concealed: true });

export const isConcealed = (schema: z.core.$ZodType): boolean => z.globalRegistry.get(schema)?.['concealed'] === true;

/** Schema of a table. Unknown keys are rejected. */
export const table = <S extends z.ZodRawShape>(shape: S) => z.strictObject(shape, { error: 'a table' });

export const filledText = (expected = 'a string that is not empty') =>
  z.string({ error: expected }).refine((value) => value.trim() !== '', { error: expected });

export const flag = () => z.boolean({ error: 'true or false' });

export const wholeNumber = (from: number, to: number) => {
  const error = `a whole number from ${from} to ${to}`;
  return z.int({ error }).min(from, { error }).max(to, { error });
};

export const seconds = (to: number) => {
  const error = `a number of seconds above 0, up to ${to}`;
  return z.number({ error }).positive({ error }).max(to, { error });
};

/** Schema of a port to listen on. Port 0 stands for any free port. */
export const listenPort = () => wholeNumber(0, 65_535);

export const oneOf = <const T extends readonly (string | boolean)[]>(values: T) => {
  const error = `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  return z.literal(values, { error });
};

interface UrlOptions {
  readonly orEmpty: boolean;
  readonly concealed?: boolean;
  readonly maxCharacters?: number;
}

export const url = (options: UrlOptions) => {
  const { maxCharacters = Number.POSITIVE_INFINITY } = options;
  const bound = Number.isFinite(maxCharacters) ? ` of at most ${maxCharacters} characters` : '';
  const error = `an http or https URL${bound}${options.orEmpty ? ', or an empty string' : ''}`;
  const schema = z
    .string({ error })
    .max(maxCharacters, { error })
    .refine((value) => (options.orEmpty && value === '') || isHttpUrl(value), { error });
  return options.concealed === true ? conceal(schema) : schema;
};

const URL_TEXT = z.url();

export const isHttpUrl = (value: string): boolean => /^https?:\/\//i.test(value) && URL_TEXT.safeParse(value).success;

/** Schema of a non-empty secret as plain text. The configuration wraps the secret in an object hidden from logs. */
export const filledSecret = () => {
  const error = 'a string that is not empty';
  return conceal(z.string({ error }).min(1, { error }));
};
