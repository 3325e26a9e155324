// A policy as people write it and as it is sent: one schema in two forms. The client refuses at the line of a file, the edge by the number of the rule.

import * as z from 'zod';
import { ACTION_NAMES, type Policy } from '../policy.ts';
import type { FilePolicy, ReadPolicy } from './file-policy.ts';
import { problemOfJson } from './json-guard.ts';
import { actionSchemas, networks } from './policy-actions.ts';
import { loginSchema, POLICY_RULE_NAME_MAX_CHARS } from './policy-auth.ts';
import {
  type Dialect,
  headerTable,
  headerTest,
  judgedInTurn,
  list,
  method,
  pathGlob,
  printable,
  table,
} from './policy-values.ts';

/**
 * rules of one policy; each may be looked at for each request
 * @limit policies: Rules in a policy | `POLICY_INVALID`
 */
export const POLICY_RULES_MAX = 100;
/**
 * texts, numbers, lists and tables of a policy as it is sent, all together: each is judged in the turn in which it comes
 * @limit policies: Values in a policy, over every rule | `POLICY_INVALID`
 */
export const POLICY_VALUES_MAX = 5000;
/** `not` within `not`: more says nothing that fewer do not say */
export const POLICY_NOT_DEPTH_MAX = 8;

const optionals = (shapes: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodOptional> =>
  Object.fromEntries(Object.entries(shapes).map(([name, schema]) => [name, schema.optional()]));

// ---- match ----

/** As deep as it may be, and no deeper: what came from a stranger is never followed without an end. Each level is made when it is needed. */
const match = (dialect: Dialect, depth: number): z.ZodType => {
  const most = POLICY_NOT_DEPTH_MAX;
  const inner =
    depth === most
      ? z.never({ error: `left out: \`not\` within \`not\` ${most} times is enough` })
      : z.lazy(() => match(dialect, depth + 1));
  const fields = table({
    method: list(dialect, method(), { what: 'a method' }).optional(),
    path: list(dialect, pathGlob(), { what: 'a glob over paths' }).optional(),
    header: headerTable(headerTest(dialect), { changes: false, fold: true }).optional(),
    address: networks(dialect).optional(),
    not: inner.optional(),
  });
  // `not: {}` holds of no request: a rule that can never match is a slip.
  return depth === 0 ? fields : fields.refine(hasField, { error: 'a match with at least one field' });
};

const hasField = (value: object): boolean => Object.values(value).some((field) => field !== undefined);

// ---- a rule ----

const rule = (dialect: Dialect): z.ZodType =>
  table({
    name: printable(POLICY_RULE_NAME_MAX_CHARS).optional(),
    match: match(dialect, 0).optional(),
    ...optionals(actionSchemas(dialect)),
  }).superRefine((value, context) => {
    const given = ACTION_NAMES.filter((name) => (value as Readonly<Record<string, unknown>>)[name] !== undefined);
    if (given.length === 1) return;
    const has =
      given.length === 0 ? `: ${ACTION_NAMES.join(', ')}` : `, not ${given.map((name) => `\`${name}\``).join(' and ')}`;
    context.addIssue({ code: 'custom', message: `a rule with exactly one action${has}` });
  });

const rules = (dialect: Dialect): z.ZodType => {
  const error = { error: 'a list of rules' };
  if (dialect === 'wire') return judgedInTurn(z.array(z.unknown(), error).superRefine(refuseMore), rule(dialect));
  return z.array(rule(dialect), error).superRefine(refuseMore);
};

/** At the line of the first that is too many. */
const refuseMore = (given: readonly unknown[], context: z.RefinementCtx): void => {
  const max = POLICY_RULES_MAX;
  if (given.length <= max) return;
  context.addIssue({ code: 'custom', path: [max], message: `left out: a policy has at most ${max} rules` });
};

// ---- the whole ----

/** Nothing is read before this was looked at. */
const guarded = (schema: z.ZodType, valuesMax?: number): z.ZodType =>
  z.preprocess((value, context) => {
    const problem = problemOfJson(value, valuesMax);
    if (problem !== null) context.addIssue({ code: 'custom', path: problem.path, message: problem.expected });
    return value;
  }, schema);

const whole = (dialect: Dialect): z.ZodType =>
  table({ login: loginSchema(dialect).nullable().default(null), rules: rules(dialect) });

const FILE = 'a list of rules, or a table of `login` and `rules`';

const fileForms = (): z.ZodType => {
  const bare = rules('file').transform((given) => ({ login: null, rules: given }));
  return z.union([bare, whole('file')], { error: FILE });
};

/** A key without a value is no key: an action is known by being there. */
const withoutGaps = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutGaps);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutGaps(inner)]));
};

/** As it is sent; its defaults are filled in. Made at the first use: most processes never read a policy. */
export const wirePolicySchema: z.ZodType<Policy> = z.lazy(() =>
  guarded(whole('wire'), POLICY_VALUES_MAX).transform(withoutGaps),
) as unknown as z.ZodType<Policy>;

/** As people write it. What comes out has one form, and is the wire's but for its secrets and files. */
export const filePolicySchema: z.ZodType<ReadPolicy, FilePolicy> = z.lazy(() =>
  guarded(fileForms()).transform(withoutGaps),
) as unknown as z.ZodType<ReadPolicy, FilePolicy>;
