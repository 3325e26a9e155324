import { expect, it } from 'vitest';
import { DatabaseAway, driverError } from './database-away.ts';

const failed = (code: string, message = 'of the driver'): Error => Object.assign(new Error(message), { code });

it.each([
  ['EAGAIN', 'the database accepts no connections right now'],
  ['EMFILE', 'the platform has no free file descriptor for the database right now'],
  ['53100', 'the database disk is full'],
  ['53200', 'the database is out of memory'],
  ['53300', 'the database cannot be reached right now'],
  ['58030', 'the database cannot read or write its files'],
])('the database error %s becomes a 503: %s', (code, reason) => {
  const cause = failed(code);
  const fault = driverError(cause) as DatabaseAway;
  expect(fault).toBeInstanceOf(DatabaseAway);
  expect([fault.code, fault.status, fault.message, fault.cause]).toEqual(['DATABASE_AWAY', 503, reason, cause]);
});

it.each(['23505', '42P01', '53400', '58000', 'EACCES'])('the database error %s is not converted', (code) => {
  const error = failed(code);
  expect(driverError(error)).toBe(error);
});
