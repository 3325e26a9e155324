// Policy details stored with a captured request: what the rules did, and which fields are never shown.
import type { CapturedPolicy } from '@tunnel/contract';
import type { RequestChanges } from '@tunnel/policy';

export interface CapturedRules {
  readonly policy: CapturedPolicy;
  /** Path of the request as sent by the visitor, before any change by a rule. */
  readonly askedPath: string;
  /** Header fields of the request, in lower case, that carry a token of the policy. */
  readonly secretFields: readonly string[];
  /** Changes to the request for the service. Null without changes, or without a service. */
  readonly changes: RequestChanges | null;
}
