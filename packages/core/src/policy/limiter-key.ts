// Whom a rate limit counts a request for.
import { type HeaderField, onlyValueOf } from '../http1/fields.ts';
import { CORE_LIMITS } from '../limits.ts';
import { networkOf } from '../net/caller-address.ts';

interface LimiterSubject {
  /** The visitor's, v4-mapped ones as v4. */
  readonly address: string;
  readonly headers: readonly HeaderField[];
  /** Who was let in by an `auth` before; null: nobody yet. */
  readonly user: string | null;
}

/**
 * `by` as in a rule: `address`, `user`, `tunnel` or `header:NAME`. Where there is no user or no such header it is the address; so it is
 * where the header came twice, as nobody knows which of the two the service takes. No key is another's: an address has neither an `s` nor a `#`.
 */
export const limiterKeyOf = (by: string, subject: LimiterSubject, sha256Hex: (text: string) => string): string => {
  // A tunnel has one host, however it is written.
  if (by === 'tunnel' || by === 'header:host') return 'tunnel';
  const { user } = subject;
  if (by === 'user' && user !== null) return `user:${short(user, sha256Hex)}`;
  const value = by.startsWith(HEADER) ? onlyValueOf(subject.headers, by.slice(HEADER.length)) : null;
  return value === null ? networkOf(subject.address) : `header:${short(value, sha256Hex)}`;
};

const HEADER = 'header:';

/** A table of ten thousand keys is not one of ten thousand long texts. */
const short = (text: string, sha256Hex: (text: string) => string): string =>
  text.length > CORE_LIMITS.LIMITER_KEY_MAX_CHARS ? `#${sha256Hex(text)}` : `=${text}`;
