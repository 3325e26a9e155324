// Schemas of tool arguments, and error messages for invalid arguments. A message names the argument and the expected value, and quotes
// only the beginning of the caller's text.
import { Fault } from '@tunnel/errors';
import * as z from 'zod';

/** Maximum characters quoted from a caller's text, such as a field or a name. */
const TOOL_QUOTE_MAX_CHARS = 80;
/** Maximum length of a tunnel id or name, a request id or a host. The longest valid value is a host name of 253 characters. */
const TOOL_NAME_MAX_CHARS = 260;
/** Maximum length of a path fragment in a search. */
const TOOL_PATH_PART_MAX_CHARS = 1024;

/** NUL characters and unpaired surrogates, which cannot be stored or sent as text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const NO_TEXT = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

export const text = (description: string, maxChars: number = TOOL_NAME_MAX_CHARS) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .refine((value) => !NO_TEXT.test(value), { error: 'contains an invalid character' })
    .meta({ description });

export const wholeNumber = (description: string, min: number, max: number) => {
  const error = ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? 'is missing' : `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error }).meta({ description });
};

export const tunnelArgument = text('The id of the tunnel (tun_…), or the name of a tunnel opened by this MCP server.');

export const methodArgument = text('Only requests with this HTTP method.', 32).transform((method) =>
  method.toUpperCase(),
);

export const pathArgument = text('Only requests with this text in the path or query.', TOOL_PATH_PART_MAX_CHARS);

/** Shortens a text without splitting a surrogate pair at its end. */
export const cutText = (long: string, maxChars: number): string => {
  if (long.length <= maxChars) return long;
  const endsInHalf = /[\ud800-\udbff]$/.test(long.slice(maxChars - 1, maxChars));
  return long.slice(0, endsInHalf ? maxChars - 1 : maxChars);
};

/** Quotes a caller's text for an error message, shortened if necessary. */
export const quoted = (word: string): string => {
  const shown = cutText(word, TOOL_QUOTE_MAX_CHARS);
  return JSON.stringify(shown === word ? word : `${shown}…`);
};

/** Parses tool arguments. Throws API_BAD_REQUEST with the name of the first invalid argument. */
export const readArguments = <Input>(schema: z.ZodType<Input>, given: unknown): Input => {
  const read = schema.safeParse(given ?? {}, { error: inPlainWords });
  if (read.success) return read.data;
  throw new Fault('API_BAD_REQUEST', { reason: refusalOf(read.error.issues[0]) });
};

const refusalOf = (issue: z.core.$ZodIssue | undefined): string => {
  if (issue?.code === 'unrecognized_keys') return issue.message;
  const field = issue === undefined || issue.path.length === 0 ? 'arguments' : issue.path.join('.');
  return `${field}: ${issue?.message ?? 'is not valid'}`;
};

/** Error messages for schemas without custom messages. */
const inPlainWords = (issue: z.core.$ZodRawIssue): string => {
  if (issue.code === 'unrecognized_keys') return `unknown argument ${quoted(issue.keys[0] ?? '')}`;
  if (issue.input === undefined) return 'is missing';
  if (issue.code === 'invalid_type') return `must be ${issue.expected === 'object' ? 'an' : 'a'} ${issue.expected}`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_big') return `must have at most ${issue.maximum} characters`;
  if (issue.code === 'too_small') return 'must not be empty';
  return 'is not valid';
};
