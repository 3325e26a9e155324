// What the rules of a tunnel did with a request, and how people log in, in the words of people. Pure; docs/policy.md says more.
import type { CapturedPolicy, CapturedRequest, ShownRule, TunnelPolicy } from '@tunnel/contract';

type Ruled = Pick<CapturedRequest, 'policy' | 'status'>;

/** Actions whose answer is a closed door. The others that answer (redirect, respond, cors) are what the owner wants to be said. */
const DOORS: ReadonlySet<string> = new Set([
  ...['allow_addresses', 'auth', 'deny', 'max_body', 'rate_limit', 'verify_webhook'],
]);

/** A rule answered instead of the service, and did not let the visitor in. */
export const isTurnedAway = ({ policy, status }: Ruled): boolean => {
  const rule = policy?.answered_by ?? null;
  return rule !== null && (DOORS.has(rule.action) || (status ?? 0) >= 400);
};

/** Rules are known by number, and by name where they have one; 0 is one of the operator's. */
const ruleText = ({ index, name }: { readonly index: number; readonly name: string | null }): string => {
  const rule = index === 0 ? 'an operator rule' : `rule ${index}`;
  return name === null ? rule : `${rule} (${name})`;
};

/** Which rule answered; null: none did, and the service saw it. */
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

/** The rules that a request matched, each in words as far as they are known: the policy may have changed since. */
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

/** Who vouches for people; null: nobody logs in. */
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
