// Cryptographic functions for policy rules, implemented with Node.js.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { PolicyDigests } from '@tunnel/policy';
import { sha256Hex } from '@tunnel/runtime';

export const policyDigests: PolicyDigests = {
  sha256Hex,
  hmac: (algorithm, key, parts) => {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};
