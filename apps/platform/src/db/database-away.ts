// Tells an error that says "no database right now" from one that says "this query is wrong", and makes the fault that callers get for it.
import { Fault } from '@tunnel/errors';
import { LIMITS } from '../limits.ts';

/** It let a statement wait for longer than any may take. */
export class DatabaseSilent extends Error {
  constructor() {
    super('the database does not answer');
  }
}

/** Of the socket and its name. */
const SOCKET_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Of PostgreSQL: connection exceptions (08), shutting down or starting (57P), too many connections (53300). */
const SERVER_CODE = /^(08...|57P0[1-5]|53300)$/;

/** What the drivers say in words only; the last two when we have closed it ourselves, because the process stops. */
const WORDS = new RegExp(
  `^(${[
    'Connection terminated',
    'timeout exceeded when trying to connect',
    'Client has encountered a connection error',
    'driver has already been destroyed',
    'Cannot use a pool after calling end on the pool',
  ].join('|')})`,
);

export const isDatabaseAway = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseSilent) return true;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && (SOCKET_CODES.has(code) || SERVER_CODE.test(code))) return true;
  if (WORDS.test(error.message)) return true;
  return error instanceof AggregateError && error.errors.some(isDatabaseAway);
};

export const databaseAway = (cause?: unknown): Fault =>
  new Fault('DATABASE_AWAY', { seconds: LIMITS.DATABASE_RETRY_AFTER_SECS }, { cause });
