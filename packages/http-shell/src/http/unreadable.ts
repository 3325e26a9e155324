// Error message for requests that do not match the schema of a route: a sentence in plain words that names the field.
import { Fault } from '@tunnel/errors';

/** A problem reported by a schema. */
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Creates the fault for a problem. `target` is the validated part of the request, such as `json` or `query`. */
export const unreadableFault = (issue: Issue | undefined, target: string): Fault => {
  const field = issue === undefined || issue.path.length === 0 ? nameOfTarget(target) : issue.path.join('.');
  const message = inPlainWords(issue?.message ?? 'cannot be read');
  // Messages of this repository's schemas already start with the field.
  return new Fault('API_BAD_REQUEST', { reason: message.startsWith(`${field} `) ? message : `${field}: ${message}` });
};

const nameOfTarget = (target: string): string => (target === 'json' ? 'body' : target);

/** Messages of the schema library for a value of the wrong type, and for a value that is too short or too long. */
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
