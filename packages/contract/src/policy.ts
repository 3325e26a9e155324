// The rules of a tunnel as the edge's REST and the platform show them: in plain words, with their counts, without a secret.
import * as z from 'zod';

const count = z.int().min(0);
const ruleIndex = z.int().min(1).meta({ description: 'Rules count from 1.', examples: [2] });
const ruleName = z.string().nullable().meta({ examples: ['office'] });
const action = z.string().meta({ description: 'The action of the rule, by its name in the file.', examples: ['auth'] });

/** In lists: that there is one, and what it is made of. */
export const policyBrief = z
  .object({
    rules: count.meta({ description: 'How many.', examples: [3] }),
    actions: z.array(z.string()).meta({ examples: [['allow', 'auth']] }),
    revision: count,
    hash_short: z.string().meta({ examples: ['1f3a9c02'] }),
  })
  .meta({ id: 'PolicyBrief' });
export type PolicyBrief = z.infer<typeof policyBrief>;

const tunnelRule = z
  .object({
    index: ruleIndex,
    name: ruleName,
    match: z.unknown().meta({ description: 'As the policy has it; null: every request.' }),
    action,
    summary: z.string().meta({ description: 'In plain words.', examples: ['/admin/**: a login is needed'] }),
    matched: count.meta({ description: 'Requests that it matched, since this policy is in force.' }),
    answered: count.meta({ description: 'Those of them that it answered; no service saw these.' }),
  })
  .meta({ id: 'TunnelRule' });
export type TunnelRule = z.infer<typeof tunnelRule>;

export const tunnelPolicy = z
  .object({
    revision: count,
    hash_short: z.string().meta({ examples: ['1f3a9c02'] }),
    login: z
      .object({
        provider: z.string().optional().meta({ description: "One of the operator's, by its name." }),
        issuer: z.string().optional().meta({ description: 'One of the tunnel’s own.' }),
        client_id: z.string().optional(),
      })
      .nullable(),
    rules: z.array(tunnelRule).meta({ description: 'In the order in which they are read.' }),
    operator_rules: count.meta({ description: "How many rules of the operator's stand before these." }),
  })
  .meta({ id: 'TunnelPolicy' });
export type TunnelPolicy = z.infer<typeof tunnelPolicy>;

/** Of a captured request: what the rules did with it. */
export const capturePolicy = z
  .object({
    answered_by: z
      .object({
        index: count.meta({ description: 'Of the rule, from 1; 0: one of the operator.' }),
        name: ruleName,
        action,
      })
      .nullable()
      .meta({ description: 'The rule that answered it, so that no service saw it; null: it was passed on.' }),
    matched: z.array(ruleIndex).meta({ description: 'The rules of the tunnel that it matched.' }),
    user: z.string().nullable().meta({ description: 'Who the visitor is, as X-Tunnel-User says it.' }),
  })
  .meta({ id: 'CapturePolicy' });
export type CapturePolicy = z.infer<typeof capturePolicy>;

/** Actions that keep somebody out. */
const GUARDS: ReadonlySet<string> = new Set(['deny', 'allow_addresses', 'auth', 'verify_webhook']);

/** Whoever has the address of such a tunnel comes in. */
export const isOpenToEveryone = (policy: Pick<PolicyBrief, 'actions'> | null | undefined): boolean =>
  !(policy?.actions ?? []).some((name) => GUARDS.has(name));
