// Distinguishes driver errors for an unavailable database from errors of a wrong query. The distinction is made where the error occurs;
// other code checks the class. A code like ECONNRESET is not enough, because callers, mail servers and the payment processor cause the
// same codes.
import { Fault } from '@tunnel/errors';

/** Retry time sent to callers while the database is unavailable. */
const DATABASE_RETRY_AFTER_SECS = 2;

/** The database is unavailable. Thrown only by the connections of db/database.ts; `cause` is the driver's error. */
export class DatabaseAway extends Fault {
  constructor(cause: Error) {
    const message = REASONS.get(String((cause as { code?: unknown }).code));
    super('DATABASE_AWAY', RETRY_AFTER, { cause, ...(message === undefined ? {} : { message }) });
  }
}

/** Error messages for failures of a reachable database, by error code. An operator has to fix these failures, so callers get the reason. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['EAGAIN', 'the database accepts no connections right now'],
  ['EMFILE', 'the platform has no free file descriptor for the database right now'],
  ['53100', 'the database disk is full'],
  ['53200', 'the database is out of memory'],
  ['58030', 'the database cannot read or write its files'],
]);

const RETRY_AFTER = { seconds: DATABASE_RETRY_AFTER_SECS };

/** Returns the fault for callers while the tables do not exist yet, or after a probe timed out, without an actual driver error. */
export const notReady = (): Fault => new Fault('DATABASE_AWAY', RETRY_AFTER);

/** Error codes of sockets and name resolution that mean an unavailable database. */
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
  // EAGAIN: a local socket with a full queue, as of a hanging database. EMFILE: this process has no free file descriptor.
  'EAGAIN',
  'EMFILE',
]);

/**
 * PostgreSQL error codes that mean an unavailable database: connection exceptions (08), shutting down or starting (57P), too many
 * connections (53300), and a machine without memory or disk space or with a broken disk (53100, 53200, 58030).
 */
const SERVER_CODE = /^(08...|57P0[1-5]|53[123]00|58030)$/;

/**
 * Driver errors without a code, recognized by their message. The last message appears when this process has closed the pool while
 * stopping.
 */
const WORDS = new RegExp(
  `^(${[
    'Connection terminated',
    'timeout exceeded when trying to connect',
    'Client has encountered a connection error',
    'Cannot use a pool after calling end on the pool',
  ].join('|')})`,
);

/**
 * Converts a driver error into DatabaseAway if the error means an unavailable database. Other errors, such as errors of a wrong query,
 * are returned unchanged.
 */
export const driverError = (error: unknown): unknown =>
  error instanceof Error && !(error instanceof Fault) && saysAway(error) ? new DatabaseAway(error) : error;

const saysAway = (error: Error): boolean => {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && (SOCKET_CODES.has(code) || SERVER_CODE.test(code))) return true;
  if (WORDS.test(error.message)) return true;
  return error instanceof AggregateError && error.errors.some((each) => each instanceof Error && saysAway(each));
};
