// The policy of a tunnel as the edge's REST shows it, and what rules did to a captured request. No secret, hash or salt is in any of it.
import * as z from 'zod';

const count = z.int().min(0);
const index = z.int().min(1).meta({ description: 'Rules count from 1.' });
const ruleName = z.string().nullable().meta({ description: 'null: the rule has none.' });
const action = z.string().meta({ description: 'As in the file: `deny`, `auth`, `rate_limit` …', examples: ['auth'] });
const revision = count.meta({ description: '`policy_revision`; in a group that of all members.' });
const hashShort = z.string().meta({ description: 'The first 8 digits of the hash.', examples: ['1f3a9c02'] });

export const policySummary = z
  .object({
    rules: count.meta({ description: 'How many.' }),
    actions: z.array(z.string()).meta({ description: 'Those that its rules have, each once.', examples: [['auth']] }),
    revision,
    hash_short: hashShort,
  })
  .meta({ id: 'PolicySummary' });
export type PolicySummary = z.infer<typeof policySummary>;

const shownLogin = z.union([
  z.object({ provider: z.string().meta({ description: 'One of the operator’s, by name.' }) }),
  z.object({ issuer: z.string(), client_id: z.string() }),
]);

const shownRule = z
  .object({
    index,
    name: ruleName,
    match: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'As in the file; null: every request. Values of headers that hold secrets are redacted.' }),
    action,
    summary: z.string().meta({ description: 'What it does, in words.' }),
    matched: count.meta({ description: 'Requests that it was for, since this policy is in force.' }),
    answered: count.meta({ description: 'Those of them that it answered itself.' }),
  })
  .meta({ id: 'PolicyRule' });
export type ShownRule = z.infer<typeof shownRule>;

export const tunnelPolicy = z
  .object({
    revision,
    hash_short: hashShort,
    login: shownLogin.nullable().meta({ description: 'Who vouches for people; null: nobody logs in.' }),
    rules: z.array(shownRule).meta({ description: 'In their order.' }),
    operator_rules: count.meta({ description: 'Rules of the operator that come before these.' }),
  })
  .meta({ id: 'TunnelPolicy' });
export type TunnelPolicy = z.infer<typeof tunnelPolicy>;

export const capturedPolicy = z
  .object({
    answered_by: z
      .object({
        index: count.meta({ description: 'Rules count from 1; 0: one of the operator.' }),
        name: ruleName,
        action,
      })
      .nullable()
      .meta({ description: 'The rule that answered; null: it went on to the service.' }),
    matched: z.array(index).meta({ description: 'The rules that it was for, in their order.' }),
    user: z.string().nullable().meta({ description: 'Who the visitor was; null: nobody asked.' }),
  })
  .meta({ id: 'CapturedPolicy' });
export type CapturedPolicy = z.infer<typeof capturedPolicy>;
