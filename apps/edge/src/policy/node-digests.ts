// Hash functions for the policy rules, implemented with node:crypto.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { PolicyDigests } from '@tunnel/policy';
import { sha256Hex } from '@tunnel/runtime';

export const NODE_DIGESTS: PolicyDigests = {
  sha256Hex: (text) => sha256Hex(text),
  hmac: (algorithm, key, parts) => {
    const mac = createHmac(algorithm, key);
    for (const part of parts) mac.update(part);
    return mac.digest();
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};
