// Error messages for the terminal: one line with the problem, one line with the next step, and a stack trace only on request.
import { type ErrorCode, Fault } from '@tunnel/errors';
import { docsAddress, placeOfError, withDocsAddresses } from './docs-links.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts';
import type { Io } from './io.ts';

/** Returns an error as a fault of the catalogue, or undefined for an unexpected error. */
export const faultOf = (error: unknown): Fault | undefined => {
  if (error instanceof Fault) return error.code === 'INTERNAL' && error.cause !== undefined ? undefined : error;
  return undefined;
};

/**
 * Creates the fault for a command that cannot run as typed. `reason` is a sentence with a lower-case first letter, because it is printed
 * after `tunnel: `.
 */
export const misuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });

interface CommandWords {
  readonly message?: string;
  /**
   * Hint for the user. A function reads the fault's message, because an edge sends hardly any values; if it returns undefined, the hint
   * of the catalogue is used.
   */
  readonly hint?: string | ((fault: Fault) => string | undefined);
}

/** Messages and hints for people who type commands. The catalogue addresses programs that call an API over HTTP. */
const COMMAND_WORDS: Partial<Record<ErrorCode, CommandWords>> = {
  CLIENT_KEY_MISSING: { message: 'no API key.' },
  AUTH_TOKEN_INVALID: { message: 'invalid API key.', hint: 'Run `tunnel login`, or set TUNNEL_API_KEY.' },
  AUTH_TOKEN_REVOKED: { message: 'this API key was revoked.', hint: 'Run `tunnel login`, or set TUNNEL_API_KEY.' },
  LOGIN_WRONG: {
    message: 'incorrect email or password.',
    hint: 'Also check the platform URL: `tunnel login --platform <url>`.',
  },
  LOGIN_THROTTLED: { hint: 'Wait, then try again.' },
  LOGIN_BUSY: { hint: 'Try again in a moment.' },
  DATABASE_AWAY: { hint: 'Try again in a moment.' },
  ACCOUNT_UNVERIFIED: {
    message: 'verify your email first.',
    hint: 'Open the link in the verification mail, then try again.',
  },
  KEY_UNKNOWN: { hint: 'List your keys: `tunnel keys list`.' },
  KEY_LIMIT: { hint: 'Revoke an unused key: `tunnel keys revoke <id>`.' },
  RESERVATION_UNKNOWN: { hint: 'List your reservations: `tunnel reservations`.' },
  RESERVATION_LIMIT: { hint: 'Release an unused name or port: `tunnel release <name>`.' },
  DOMAIN_UNKNOWN: { hint: 'List your domains: `tunnel domains`.' },
  DOMAIN_LIMIT: {
    hint: 'Remove an unused domain (`tunnel domains remove <host>`), or change to a larger plan.',
  },
  DOMAIN_CHECK_TOO_SOON: { hint: 'Domains are also checked automatically.' },
  TUNNEL_DOMAIN_UNVERIFIED: {
    hint: ({ message }) => `Verify the domain first: \`tunnel domains add ${namedIn(message)}\`.`,
  },
  TUNNEL_SUBDOMAIN_IN_USE: { hint: (fault) => heldNameHint(fault, SHARE_HINT) },
  TUNNEL_DOMAIN_IN_USE: { hint: (fault) => heldNameHint(fault, SHARE_HINT) },
  TUNNEL_P2P_NAME_IN_USE: { hint: (fault) => heldNameHint(fault, '') },
  BILLING_CAP_NOT_PAYG: { hint: 'Subscribe first, in the dashboard.' },
  BILLING_PROCESSOR_AWAY: { hint: 'Try again in a moment.' },
  SPEND_CAP_REACHED: { hint: 'Raise the cap: `tunnel billing cap <dollars>`. Remove it: `tunnel billing cap none`.' },
};

const SHARE_HINT = ' To balance visitors between both tunnels, start both with --group (see `tunnel group-key`).';

/**
 * Returns a hint with the user's own tunnel that uses a name, and the command to close it. Returns undefined if the edge does not report
 * a tunnel, because the name may belong to another account.
 */
const heldNameHint = ({ message, values }: Fault, share: string): string | undefined => {
  const { held_by: tunnel, held_by_client: computer } = values;
  if (tunnel === undefined) return undefined;
  const where = computer === undefined ? '' : ` on ${computer}`;
  return `Your tunnel '${tunnel}'${where} uses it. To close that tunnel: \`tunnel close ${namedIn(message)}\`.${share}`;
};

/**
 * Returns the first quoted name of a message, for use in a command line. A name with special characters for the shell becomes a
 * placeholder for the user to fill in.
 */
const namedIn = (message: string): string => {
  const name = /'([^']{1,300})'/.exec(message)?.[1] ?? '';
  if (/^[\w.-]+$/.test(name)) return name;
  return /^\*\.[\w.-]+$/.test(name) ? `'${name}'` : 'HOST';
};

/** Error codes of a mistyped command. The correct use is in the command's help. */
const MISUSE: ReadonlySet<ErrorCode> = new Set(['CLIENT_USAGE', 'API_BAD_REQUEST']);

const IS_SENTENCE = /[.?]$/;

/**
 * Returns the hint for a fault, or undefined. A hint with unfilled placeholders is left out: messages of an edge come without values, and
 * half a hint is worse than no hint.
 */
export const hintOf = (fault: Fault, path = 'tunnel'): string | undefined => {
  // A message that is a whole sentence already says what to do.
  if (MISUSE.has(fault.code)) return IS_SENTENCE.test(fault.message) ? undefined : `See \`${path} --help\`.`;
  const own = COMMAND_WORDS[fault.code]?.hint;
  const hint = (typeof own === 'function' ? own(fault) : own) ?? fault.next;
  return hint === '' || /\{\w+\}/.test(hint) ? undefined : hint;
};

/**
 * Adds a hint to a message. After a whole sentence, the hint follows on the same line. After a fragment, the hint goes on the next line.
 */
const withHint = (line: string, hint: string | undefined): string[] => {
  if (hint === undefined) return [line];
  return IS_SENTENCE.test(line) ? [`${line} ${oneLine(hint)}`] : [line, `  ${oneLine(hint)}`];
};

export interface ProblemContext {
  /** The typed command, for a reference to its help. */
  readonly path?: string | undefined;
  /** The platform whose pages explain the problem. Null or absent: no platform is known, and the lines have no link. */
  readonly platformUrl?: string | null | undefined;
}

/** Formats a fault for the terminal. The last line is a link to the page that explains the problem. */
export const problemLines = (fault: Fault, { path, platformUrl = null }: ProblemContext = {}): string[] => {
  const message = oneLine(COMMAND_WORDS[fault.code]?.message ?? fault.message);
  const hint = hintOf(fault, path);
  const linked = hint === undefined || platformUrl === null ? hint : withDocsAddresses(hint, platformUrl);
  const requestId = fault.status >= 500 ? fault.values['request_id'] : undefined;
  // The hint of a mistyped command leads to the command's help. A hint that names a page needs no second link.
  const isLinked = MISUSE.has(fault.code) || linked !== hint;
  return [
    ...withHint(`tunnel: ${message}`, linked),
    ...(requestId === undefined ? [] : [`  Request id: ${oneLine(String(requestId))}`]),
    ...(platformUrl === null || isLinked ? [] : [`  Docs: ${docsAddress(placeOfError(fault.code), platformUrl)}`]),
  ];
};

export const reportProblem = (
  error: unknown,
  io: Pick<Io, 'stderr' | 'env' | 'platformUrl'>,
  path?: string,
): ExitCode => {
  const fault = faultOf(error);
  const lines =
    fault === undefined
      ? [`tunnel: unexpected error: ${oneLine(textOf(error))}`, '  Set TUNNEL_DEBUG=1 to see a stack trace.']
      : problemLines(fault, { path, platformUrl: io.platformUrl() });
  if (io.env['TUNNEL_DEBUG'] === '1' && error instanceof Error) lines.push(error.stack ?? '');
  io.stderr.write(`${lines.join('\n')}\n`);
  return fault === undefined ? EXIT.unexpected : exitCodeOf(fault);
};

/** Replacements that turn messages of commander into natural sentences. A rule is applied to the result of the rules before. */
const REWORDED: readonly (readonly [RegExp, string])[] = [
  [/^error: /, ''],
  // The message repeats the typed text, but not the password of a URL.
  [/:\/\/[^\s/']*@/, '://…@'],
  [/^command-argument value '(.*)' is invalid for argument '(\S+)'\./, "invalid $2 '$1'."],
  [/^invalid port '(?=https?:\/\/)/i, "invalid URL '"],
  [/^option '(?:-\w, )?(--\S+)[^']*' argument '(.*)' is invalid\./, "invalid $1 '$2'."],
  [/^option '(?:-\w, )?(--\S+)[^']*' argument missing$/, '$1 needs a value.'],
  [/^required option '(--\S+)[^']*' not specified$/, '$1 is required.'],
  [/^missing required argument '(\S+)'$/, 'missing argument: $1.'],
  [/^unknown option '(.*?)'/, "unknown option '$1'."],
  [/^unknown command '(.*?)'/, "unknown command '$1'."],
  [/^too many arguments.*?\. Expected (\d+) arguments?.*$/, 'too many arguments: expected $1.'],
  [/ Allowed choices are (.*)\.$/, ' Use $1.'],
];

export const usageSentence = (text: string): string =>
  REWORDED.reduce((words, [pattern, better]) => words.replace(pattern, better), oneLine(text));

const textOf = (error: unknown): string => {
  if (error instanceof Fault) return error.internal ?? error.message;
  return error instanceof Error ? error.message : String(error);
};

/** Matches control characters, line and paragraph separators, and characters that change the direction of text. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** Matches nearly every text: printable ASCII without a space at either end, so that nothing needs to be replaced. */
const PLAIN = /^[!-~](?:[ -~]*[!-~])?$/;

/**
 * Makes a text safe to print on one line. A message of an edge can contain any characters; after this call the text cannot break the line
 * or move the cursor.
 */
export const oneLine = (text: string): string => (PLAIN.test(text) ? text : text.replace(STEERING, ' ').trim());
