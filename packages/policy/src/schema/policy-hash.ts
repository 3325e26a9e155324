// Hash that identifies a policy. Client and edge, and the members of a group, compare only the hash.

import type { Policy } from '../policy.ts';
import { canonicalJson } from '../text/canonical-json.ts';

/** Returns 64 hex digits over the policy and its service names, in any order. */
export const policyHash = (
  policy: Policy | null,
  services: readonly string[],
  sha256Hex: (text: string) => string,
): string => sha256Hex(canonicalJson({ policy, services: services.toSorted() }));
