// What is kept of the rules with a captured request: which of them matched, which one answered, and who the visitor was to them.
import type { RuleRef } from '@tunnel/core';

export interface CapturedPolicy {
  /** The rule whose answer the visitor got; null: the request went to a service. */
  readonly answeredBy: RuleRef | null;
  readonly matched: readonly RuleRef[];
  /** null: nobody had to say who asks. */
  readonly user: string | null;
  /** As the visitor asked, whatever a rule made of it for the service. */
  readonly askedPath: string;
  /** Header fields, in lower case, that carry a token of this policy: their values are shown to nobody. */
  readonly secretFields: readonly string[];
}
