// Texts about the effect of a tunnel's rules on a request, and about sign-in. Pure functions; docs/policy.md explains the details.
import type { CapturedPolicy, CapturedRequest, ShownRule, TunnelPolicy } from '@tunnel/contract';

type Ruled = Pick<CapturedRequest, 'policy' | 'status'>;

/**
 * Rule actions with a response that rejects the visitor. Other actions with a response (redirect, respond, cors) send content chosen by
 * the tunnel's owner.
 */
const DOORS: ReadonlySet<string> = new Set([
  ...['allow_addresses', 'auth', 'deny', 'max_body', 'rate_limit', 'verify_webhook'],
]);

/** Returns whether a rule rejected the visitor, so that the request did not reach the local service. */
export const isTurnedAway = ({ policy, status }: Ruled): boolean => {
  const rule = policy?.answered_by ?? null;
  return rule !== null && (DOORS.has(rule.action) || (status ?? 0) >= 400);
};

/** Returns the name of a rule: its number, and its name in parentheses if there is a name. Number 0 is a rule of the operator. */
const ruleText = ({ index, name }: { readonly index: number; readonly name: string | null }): string => {
  const rule = index === 0 ? 'an operator rule' : `rule ${index}`;
  return name === null ? rule : `${rule} (${name})`;
};

/** Returns a text about the rule that answered a request. Null if no rule answered, so that the request reached the local service. */
export const answeredText = ({ policy, status }: Ruled): string | null => {
  const rule = policy?.answered_by ?? null;
  if (rule === null) return null;
  const by = ruleText(rule);
  if (rule.action === 'auth' && status !== null && status >= 300 && status < 400) {
    return `Sent to sign in by ${by}. The request did not reach your service.`;
  }
  const what = isTurnedAway({ policy, status }) ? 'Rejected' : 'Answered';
  return `${what} by ${by}, ${rule.action}. The request did not reach your service.`;
};

export interface AppliedRule {
  readonly index: number;
  readonly text: string;
}

/**
 * Returns the rules that a request matched, with descriptions. The policy may have changed since the request, so a description can be
 * missing.
 */
export const appliedRules = (
  policy: CapturedPolicy,
  rules: readonly Pick<ShownRule, 'index' | 'name' | 'summary'>[],
): readonly AppliedRule[] =>
  policy.matched.map((index) => {
    const rule = rules.find((known) => known.index === index);
    return { index, text: rule === undefined ? 'Rule no longer exists' : nameAndSummary(rule) };
  });

const nameAndSummary = ({ name, summary }: Pick<ShownRule, 'name' | 'summary'>): string =>
  name === null ? summary : `${name}: ${summary}`;

/** Returns the sign-in provider of the tunnel's visitors. Null if the tunnel requires no sign-in. */
export const loginText = ({ login }: Pick<TunnelPolicy, 'login'>): string | null => {
  if (login === null) return null;
  return 'provider' in login ? `${login.provider} (set up by the operator)` : login.issuer;
};

export const operatorText = (count: number): string | null => {
  if (count === 0) return null;
  return count === 1
    ? '1 operator rule runs first. It applies to every tunnel on this edge.'
    : `${count} operator rules run first. They apply to every tunnel on this edge.`;
};
