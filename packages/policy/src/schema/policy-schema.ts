// Schema of a policy in two dialects: as people write it and as it is sent. The client reports errors with the line of the file, the edge
// with the rule number.

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
 * Maximum rules in a policy. Every request may have to check all of them.
 * @limit policies: Rules in a policy | `POLICY_INVALID`
 */
export const POLICY_RULES_MAX = 100;
/**
 * Maximum values (texts, numbers, lists, tables) in a policy on the wire, because they are validated synchronously.
 * @limit policies: Values in a policy, over every rule | `POLICY_INVALID`
 */
export const POLICY_VALUES_MAX = 5000;
/** Maximum nesting of `not`. Deeper nesting adds no meaning. */
export const POLICY_NOT_DEPTH_MAX = 8;

const optionals = (shapes: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodOptional> =>
  Object.fromEntries(Object.entries(shapes).map(([name, schema]) => [name, schema.optional()]));

// ---- match ----

/** Nested schema with limited depth, because the value is untrusted. Levels are created on demand. */
const match = (dialect: Dialect, depth: number): z.ZodType => {
  const most = POLICY_NOT_DEPTH_MAX;
  const inner =
    depth === most
      ? z.never({ error: `left out: \`not\` can be nested at most ${most} times` })
      : z.lazy(() => match(dialect, depth + 1));
  const fields = table({
    method: list(dialect, method(), { what: 'a method' }).optional(),
    path: list(dialect, pathGlob(), { what: 'a glob over paths' }).optional(),
    header: headerTable(headerTest(dialect), { changes: false, fold: true }).optional(),
    address: networks(dialect).optional(),
    not: inner.optional(),
  });
  // `not: {}` matches no request, so a rule with it can never match: certainly a mistake.
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

/** Reported at the first rule beyond the limit. */
const refuseMore = (given: readonly unknown[], context: z.RefinementCtx): void => {
  const max = POLICY_RULES_MAX;
  if (given.length <= max) return;
  context.addIssue({ code: 'custom', path: [max], message: `left out: a policy has at most ${max} rules` });
};

// ---- the whole ----

/** Checks depth, size and names of an untrusted value before the schema. */
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

/** Removes keys with an undefined value, because an action is recognized by its key. */
const withoutGaps = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutGaps);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutGaps(inner)]));
};

/** Schema of the wire form, with defaults filled in. Created on first use, because most processes never read a policy. */
export const wirePolicySchema: z.ZodType<Policy> = z.lazy(() =>
  guarded(whole('wire'), POLICY_VALUES_MAX).transform(withoutGaps),
) as unknown as z.ZodType<Policy>;

/** Schema of the written form. The result has the wire form except for secrets and files. */
export const filePolicySchema: z.ZodType<ReadPolicy, FilePolicy> = z.lazy(() =>
  guarded(fileForms()).transform(withoutGaps),
) as unknown as z.ZodType<ReadPolicy, FilePolicy>;
