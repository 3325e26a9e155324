// Requests that do not match the description of a route: one sentence that names the field, in plain words.
import { Fault } from '@tunnel/errors';

/** A finding of a schema. */
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** `target`: the part of the request that was read, such as `json` or `query`. */
export const unreadableFault = (issue: Issue | undefined, target: string): Fault => {
  const field = issue === undefined || issue.path.length === 0 ? nameOfTarget(target) : issue.path.join('.');
  const message = inPlainWords(issue?.message ?? 'cannot be read');
  // A message of a schema in this repository begins with the field.
  return new Fault('API_BAD_REQUEST', { reason: message.startsWith(`${field} `) ? message : `${field}: ${message}` });
};

const nameOfTarget = (target: string): string => (target === 'json' ? 'body' : target);

/** Messages of the schema library for a value of the wrong type, and for one that is too short or too long. */
const WRONG_TYPE = /^Invalid input: expected (\w+), received (\w+)$/;
const WRONG_SIZE = /^Too (small|big): expected \w+ to have [<>]=?(\d+) (character|item)s$/;

const inPlainWords = (message: string): string => {
  const [, expected, received] = WRONG_TYPE.exec(message) ?? [];
  if (expected !== undefined) {
    if (received === 'undefined') return 'is missing';
    return `must be ${/^[aeio]/.test(expected) ? 'an' : 'a'} ${expected}, not ${received}`;
  }
  const [, size, count, what] = WRONG_SIZE.exec(message) ?? [];
  if (size === undefined) return message;
  return `must have at ${size === 'small' ? 'least' : 'most'} ${count} ${what}${count === '1' ? '' : 's'}`;
};
