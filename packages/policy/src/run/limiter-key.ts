// The key under which a rate limit counts a request.

import { onlyValueOf } from '@tunnel/http1';
import { networkOf } from '@tunnel/rules/net';
import type { PolicyDigests, PolicyRequest } from '../policy-step.ts';

/** Maximum length of a user or header value in a key. Longer values are replaced by their SHA-256 digest. */
const LIMITER_KEY_MAX_CHARS = 64;

/** Parts of a visitor's request that a rate limit can count by: address (IPv4-mapped as IPv4) and header fields. */
type Visit = Pick<PolicyRequest, 'address' | 'headers'>;
type Digests = Pick<PolicyDigests, 'sha256Hex'>;

/**
 * `by` is as in a rule: `address`, `user`, `tunnel` or `header:NAME`. `user` is null before authentication. Without a user or header the
 * address counts, also for a repeated header, because the service may pick either value. Keys of different kinds never collide: an address
 * contains neither `s` nor `#`.
 */
export const limiterKeyOf = (by: string, visit: Visit, user: string | null, digests: Digests): string => {
  if (by === 'address') return networkOf(visit.address);
  // A tunnel has one host, though in different spellings, so counting by Host counts by tunnel.
  if (by === 'tunnel' || by === 'header:host') return 'tunnel';
  if (by === 'user' && user !== null) return `user:${short(user, digests)}`;
  const value = by.startsWith(HEADER) ? onlyValueOf(visit.headers, by.slice(HEADER.length)) : null;
  return value === null ? networkOf(visit.address) : `header:${short(value, digests)}`;
};

const HEADER = 'header:';

/** Keeps keys short, so that a table of ten thousand keys stays small. */
const short = (text: string, digests: Digests): string =>
  text.length > LIMITER_KEY_MAX_CHARS ? `#${digests.sha256Hex(text)}` : `=${text}`;
