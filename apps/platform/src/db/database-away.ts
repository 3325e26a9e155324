// Tells an error of the driver that says "no database right now" from one that says "this query is wrong", where it arises: everybody
// later knows it by its class. A code like ECONNRESET alone says nothing: a caller, a mail server or the payment processor have it too.
import { Fault } from '@tunnel/errors';
import { LIMITS } from '../limits.ts';

/** Thrown by the connections of db/database.ts and by nobody else; `cause` is what the driver said. */
export class DatabaseAway extends Fault {
  constructor(cause: Error) {
    super('DATABASE_AWAY', RETRY_AFTER, { cause });
  }
}

const RETRY_AFTER = { seconds: LIMITS.DATABASE_RETRY_AFTER_SECS };

/** What a caller is told while the tables are not there yet, or when a probe was not answered: nobody has met it away. */
export const notReady = (): Fault => new Fault('DATABASE_AWAY', RETRY_AFTER);

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

/** What the driver says in words only; the last when we have closed it ourselves, because the process stops. */
const WORDS = new RegExp(
  `^(${[
    'Connection terminated',
    'timeout exceeded when trying to connect',
    'Client has encountered a connection error',
    'Cannot use a pool after calling end on the pool',
  ].join('|')})`,
);

/** For errors of the driver alone: those of a query that is wrong stay what they are. */
export const driverError = (error: unknown): unknown =>
  error instanceof Error && !(error instanceof Fault) && saysAway(error) ? new DatabaseAway(error) : error;

const saysAway = (error: Error): boolean => {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && (SOCKET_CODES.has(code) || SERVER_CODE.test(code))) return true;
  if (WORDS.test(error.message)) return true;
  return error instanceof AggregateError && error.errors.some((each) => each instanceof Error && saysAway(each));
};
