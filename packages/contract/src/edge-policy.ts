// Schemas of the edge's REST API for the policy of a tunnel, and for the effect of rules on a captured request. No field contains a
// secret, a hash of a secret or a salt.
import * as z from 'zod';

const count = z.int().min(0);
const index = z.int().min(1).meta({ description: 'The position of the rule, counted from 1.' });
const ruleName = z.string().nullable().meta({ description: 'The name of the rule, or null for an unnamed rule.' });
const action = z.string().meta({
  description: 'The action as written in the policy file: `deny`, `auth`, `rate_limit` …',
  examples: ['auth'],
});
const revision = count.meta({
  description: 'The `policy_revision` of the tunnel. Members of a group share the same revision.',
});
const hashShort = z
  .string()
  .meta({ description: 'The first 8 hex digits of the policy hash.', examples: ['1f3a9c02'] });

export const policySummary = z
  .object({
    rules: count.meta({ description: 'The number of rules.' }),
    actions: z
      .array(z.string())
      .meta({ description: 'The actions used by the rules, without duplicates.', examples: [['auth']] }),
    revision,
    hash_short: hashShort,
  })
  .meta({ id: 'PolicySummary' });
export type PolicySummary = z.infer<typeof policySummary>;

const shownLogin = z.union([
  z.object({ provider: z.string().meta({ description: 'The name of a sign-in provider set up by the operator.' }) }),
  z.object({ issuer: z.string(), client_id: z.string() }),
]);

const shownRule = z
  .object({
    index,
    name: ruleName,
    match: z.record(z.string(), z.unknown()).nullable().meta({
      description:
        'The match conditions as written in the policy file, or null if the rule matches every request. Secret header values are redacted.',
    }),
    action,
    summary: z.string().meta({ description: 'A readable summary of the rule.' }),
    matched: count.meta({ description: 'The number of requests matched since the policy took effect.' }),
    answered: count.meta({ description: 'The number of matched requests answered by the rule.' }),
  })
  .meta({ id: 'PolicyRule' });
export type ShownRule = z.infer<typeof shownRule>;

export const tunnelPolicy = z
  .object({
    revision,
    hash_short: hashShort,
    login: shownLogin.nullable().meta({ description: 'The sign-in provider, or null if no rule requires a sign-in.' }),
    rules: z.array(shownRule).meta({ description: 'The rules in order of execution.' }),
    operator_rules: count.meta({ description: 'The number of operator rules. Operator rules run first.' }),
  })
  .meta({ id: 'TunnelPolicy' });
export type TunnelPolicy = z.infer<typeof tunnelPolicy>;

export const capturedPolicy = z
  .object({
    answered_by: z
      .object({
        index: count.meta({ description: 'The position of the rule, counted from 1; 0 for an operator rule.' }),
        name: ruleName,
        action,
      })
      .nullable()
      .meta({
        description: 'The rule that answered the request, or null if the request was passed to the local service.',
      }),
    matched: z.array(index).meta({ description: 'The matching rules in order of execution.' }),
    user: z.string().nullable().meta({ description: 'The signed-in visitor, or null if no rule required a sign-in.' }),
  })
  .meta({ id: 'CapturedPolicy' });
export type CapturedPolicy = z.infer<typeof capturedPolicy>;
