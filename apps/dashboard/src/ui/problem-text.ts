// Texts for an error: the message, the request ID, and messages for form fields.
import { Fault } from '@tunnel/errors';

export const problemText = (error: unknown): string => {
  if (!(error instanceof Fault)) return 'An error occurred. Try again or reload the page.';
  if (error.code === 'CLIENT_PLATFORM_UNREACHABLE') return "Can't reach the platform right now.";
  return sentence(error.message);
};

/**
 * Returns the request ID of a platform error with status 500 or above, so that users can quote the ID to support. Errors with an unknown
 * code count as 500. Null for rejected requests, because their message already says what to do.
 */
export const requestIdOf = (error: unknown): string | null => {
  if (!(error instanceof Fault) || error.status < 500) return null;
  const id = error.values['request_id'];
  return typeof id === 'string' && id !== '' ? id : null;
};

/**
 * Returns the API's error message for a form field, as in "password: must have at least 8 characters" without the field's name. Null if
 * the error is not about the field.
 */
export const fieldProblem = (error: unknown, field: string): string | null => {
  if (!(error instanceof Fault) || error.code !== 'API_BAD_REQUEST') return null;
  const start = `${field}: `;
  return error.message.startsWith(start) ? sentence(error.message.slice(start.length)) : null;
};

/** Makes a sentence of a text from the error catalogue, where texts begin with a lower-case letter, because they often follow a colon. */
export const sentence = (text: string): string => {
  const begun = /^https?:/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
};
