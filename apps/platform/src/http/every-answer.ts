// What every answer of the platform has: an id of its request, and headers for browsers.
import { randomId } from '@tunnel/runtime';

export const newRequestId = (): string => randomId('req');

/** Pages of their own set their own policy over this one. */
export const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;
