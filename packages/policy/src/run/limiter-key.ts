// Whom a rate limit counts a request for.

import { onlyValueOf } from '@tunnel/http1';
import { networkOf } from '@tunnel/rules/net';
import type { PolicyDigests, PolicyRequest } from '../policy-step.ts';

/** of a user or a header’s value; a longer one is counted by its SHA-256 */
const LIMITER_KEY_MAX_CHARS = 64;

/** The visitor's address, v4-mapped ones as v4, and its fields. */
type Visit = Pick<PolicyRequest, 'address' | 'headers'>;
type Digests = Pick<PolicyDigests, 'sha256Hex'>;

/**
 * `by` as in a rule: `address`, `user`, `tunnel` or `header:NAME`; `user`: who was let in by an `auth` before, null for nobody yet. Where there
 * is no user or no such header it is the address; so it is where the header came twice, as nobody knows which of the two the service takes.
 * No key is another's: an address has neither an `s` nor a `#`.
 */
export const limiterKeyOf = (by: string, visit: Visit, user: string | null, digests: Digests): string => {
  if (by === 'address') return networkOf(visit.address);
  // A tunnel has one host, however it is written.
  if (by === 'tunnel' || by === 'header:host') return 'tunnel';
  if (by === 'user' && user !== null) return `user:${short(user, digests)}`;
  const value = by.startsWith(HEADER) ? onlyValueOf(visit.headers, by.slice(HEADER.length)) : null;
  return value === null ? networkOf(visit.address) : `header:${short(value, digests)}`;
};

const HEADER = 'header:';

/** A table of ten thousand keys is not one of ten thousand long texts. */
const short = (text: string, digests: Digests): string =>
  text.length > LIMITER_KEY_MAX_CHARS ? `#${digests.sha256Hex(text)}` : `=${text}`;
