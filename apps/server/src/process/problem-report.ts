// Formats an error as a one-line message for the operator, and chooses the exit code.
import { type ErrorCode, Fault } from '@tunnel/errors';

export const EXIT_OK = 0;
export const EXIT_UNEXPECTED = 1;
export const EXIT_USAGE = 2;

/** Returns the error if it is a Fault, an expected error with a text in the catalogue. Undefined for unexpected errors. */
export const faultOf = (error: unknown): Fault | undefined => (error instanceof Fault ? error : undefined);

export const exitCodeOf = (fault: Fault): number => (fault.code.startsWith('CONFIG_') ? EXIT_USAGE : EXIT_UNEXPECTED);

/**
 * Advice for an operator at a terminal, by error code, because the catalogue's advice is written for API clients. Empty if the message
 * needs no advice.
 */
const NEXT_HERE: Partial<Record<ErrorCode, string>> = {
  ACCOUNT_EXISTS: 'To send a link for a new password: tunnel-server admin reset-password EMAIL.',
  API_BAD_REQUEST: '',
  DATABASE_AWAY: 'Start the database. If another command has just used the database, try again.',
  KEY_UNKNOWN: 'Use an id from `tunnel keys list`.',
};

/** Returns the message of a fault in two sentences: the problem, and the suggested action. */
export const problemText = (fault: Fault): string => {
  const next = NEXT_HERE[fault.code] ?? fault.next;
  return `${fault.message}${/[.?!]$/.test(fault.message) ? '' : '.'}${next === '' ? '' : ` ${next}`}`;
};

interface Output {
  write(text: string): unknown;
}

export const reportProblem = (error: unknown, output: Output, env: NodeJS.ProcessEnv): number => {
  const fault = faultOf(error);
  if (fault) output.write(`tunnel-server: ${problemText(fault)}\n`);
  else {
    const reason = error instanceof Error ? error.message : String(error);
    output.write(
      `tunnel-server: unexpected error: ${reason.split('\n')[0]}. Set TUNNEL_DEBUG=1 to see a stack trace.\n`,
    );
  }
  if (env['TUNNEL_DEBUG'] === '1' && error instanceof Error) output.write(`${error.stack ?? ''}\n`);
  return fault ? exitCodeOf(fault) : EXIT_UNEXPECTED;
};
