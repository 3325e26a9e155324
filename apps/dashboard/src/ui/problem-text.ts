// The texts of an error.
import { Fault } from '@tunnel/errors';

export const problemText = (error: unknown): string => {
  if (!(error instanceof Fault)) return 'An error occurred. Try again or reload the page.';
  if (error.code === 'CLIENT_PLATFORM_UNREACHABLE') return "Can't reach the platform right now.";
  return sentence(error.message);
};

/** null: nothing to ask for help with. A refusal says itself what to do; an error of the platform, or one of a code that we do not know (it reads as such), has to be looked up. */
export const requestIdOf = (error: unknown): string | null => {
  if (!(error instanceof Fault) || error.status < 500) return null;
  const id = error.values['request_id'];
  return typeof id === 'string' && id !== '' ? id : null;
};

/** What the API says about one field of a form: "password: must have at least 8 characters". null: nothing. */
export const fieldProblem = (error: unknown, field: string): string | null => {
  if (!(error instanceof Fault) || error.code !== 'API_BAD_REQUEST') return null;
  const start = `${field}: `;
  return error.message.startsWith(start) ? sentence(error.message.slice(start.length)) : null;
};

/** The catalogue's texts begin small, to stand after a colon. */
export const sentence = (text: string): string => {
  const begun = /^https?:/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
};
