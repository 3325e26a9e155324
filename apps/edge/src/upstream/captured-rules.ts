// What is kept of the rules with a captured request: what they did, and what of it nobody is shown.
import type { CapturedPolicy } from '@tunnel/contract';
import type { RequestChanges } from '@tunnel/policy';

export interface CapturedRules {
  readonly policy: CapturedPolicy;
  /** As the visitor asked, whatever a rule made of it for the service. */
  readonly askedPath: string;
  /** Header fields, in lower case, that carry a token of this policy. */
  readonly secretFields: readonly string[];
  /** What its service got otherwise than it came; null: nothing, or there was no service. */
  readonly changes: RequestChanges | null;
}
