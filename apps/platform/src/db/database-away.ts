// Tells an error of the driver that says "no database right now" from one that says "this query is wrong", where it arises: everybody
// later knows it by its class. A code like ECONNRESET alone says nothing: a caller, a mail server or the payment processor have it too.
import { Fault } from '@tunnel/errors';

/** What a caller is told to wait while the database is away. */
const DATABASE_RETRY_AFTER_SECS = 2;

/** Thrown by the connections of db/database.ts and by nobody else; `cause` is what the driver said. */
export class DatabaseAway extends Fault {
  constructor(cause: Error) {
    const message = REASONS.get(String((cause as { code?: unknown }).code));
    super('DATABASE_AWAY', RETRY_AFTER, { cause, ...(message === undefined ? {} : { message }) });
  }
}

/** Failures of a database that can be reached: an operator has something to do about them, so callers get the reason. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['EAGAIN', 'the database accepts no connections right now'],
  ['EMFILE', 'the platform has no free file descriptor for the database right now'],
  ['53100', 'the database disk is full'],
  ['53200', 'the database is out of memory'],
  ['58030', 'the database cannot read or write its files'],
]);

const RETRY_AFTER = { seconds: DATABASE_RETRY_AFTER_SECS };

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
  // A local socket whose queue is full, as of a database that hangs, and a process without a free descriptor.
  'EAGAIN',
  'EMFILE',
]);

/** Of PostgreSQL: connection exceptions (08), shutting down or starting (57P), too many connections (53300), and a machine without room or with a bad disk (53100, 53200, 58030). */
const SERVER_CODE = /^(08...|57P0[1-5]|53[123]00|58030)$/;

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
