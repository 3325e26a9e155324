// Puts what went wrong into words: one line that says what, one that says what to do next. Never a stack, unless asked for.
import { type ErrorCode, Fault, isErrorCode } from '@tunnel/errors';
import { ConfigProblem } from '@tunnel/runtime';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts';
import type { Io } from './io.ts';

/** A refusal that has words in the catalogue, or undefined for anything unexpected. */
export const faultOf = (error: unknown): Fault | undefined => {
  if (error instanceof Fault) return error.code === 'INTERNAL' && error.cause !== undefined ? undefined : error;
  if (error instanceof ConfigProblem && isErrorCode(error.code)) return new Fault(error.code, error.values);
  return undefined;
};

/** The catalogue speaks to whoever calls the platform over HTTP; here are the same hints as commands. */
const COMMAND_HINTS: Partial<Record<ErrorCode, string>> = {
  LOGIN_WRONG: 'Check both, and the platform: `tunnel login --platform <url>`.',
  LOGIN_THROTTLED: 'Wait for so long.',
  LOGIN_BUSY: 'Try again in a moment.',
  DATABASE_AWAY: 'Try again in a moment.',
  ACCOUNT_UNVERIFIED: 'Open the link in the mail, then try again.',
  KEY_UNKNOWN: 'List the keys: `tunnel keys list`.',
  KEY_LIMIT: 'Revoke one that is no longer used: `tunnel keys revoke <id>`.',
  BILLING_CAP_NOT_PAYG: 'Subscribe first, on the page of the platform.',
  BILLING_PROCESSOR_AWAY: 'Try again in a moment.',
  SPEND_CAP_REACHED: 'Raise it with `tunnel billing cap <dollars>`, or remove it with `tunnel billing cap none`.',
  API_BAD_REQUEST: 'See `tunnel --help`.',
};

/** An edge's own words come without the values that our hint would need; half a hint is worse than none. */
export const hintOf = (fault: Fault): string | undefined => {
  const hint = COMMAND_HINTS[fault.code] ?? fault.next;
  return /\{\w+\}/.test(hint) ? undefined : hint;
};

export const problemLines = (fault: Fault): string[] => {
  const hint = hintOf(fault);
  const requestId = fault.status >= 500 ? fault.values['request_id'] : undefined;
  return [
    `tunnel: ${oneLine(fault.message)}`,
    ...(hint === undefined ? [] : [`  ${oneLine(hint)}`]),
    ...(requestId === undefined ? [] : [`  Request id: ${oneLine(String(requestId))}`]),
  ];
};

export const reportProblem = (error: unknown, io: Pick<Io, 'stderr' | 'env'>): ExitCode => {
  const fault = faultOf(error);
  const lines =
    fault === undefined
      ? [`tunnel: unexpected: ${oneLine(textOf(error))}`, '  Set TUNNEL_DEBUG=1 to see where.']
      : problemLines(fault);
  if (io.env['TUNNEL_DEBUG'] === '1' && error instanceof Error) lines.push(error.stack ?? '');
  io.stderr.write(`${lines.join('\n')}\n`);
  return fault === undefined ? EXIT.unexpected : exitCodeOf(fault);
};

const textOf = (error: unknown): string => {
  if (error instanceof Fault) return error.internal ?? error.message;
  return error instanceof Error ? error.message : String(error);
};

/** Control characters, ends of lines and paragraphs, and signs that turn the direction of what follows. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** An edge's message may hold anything; a line of ours stays a line, and moves no cursor. */
export const oneLine = (text: string): string => text.replace(STEERING, ' ').trim();
