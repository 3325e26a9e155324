// By what two policies are the same: client and edge, and the members of a group, compare it and nothing else.

import type { Policy } from '../policy.ts';
import { canonicalJson } from '../text/canonical-json.ts';

/** 64 hex digits, of the policy and the names of the services that it may send requests to, whose order says nothing. */
export const policyHash = (
  policy: Policy | null,
  services: readonly string[],
  sha256Hex: (text: string) => string,
): string => sha256Hex(canonicalJson({ policy, services: services.toSorted() }));
