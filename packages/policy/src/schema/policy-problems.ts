// What is wrong with a policy, in words: by the number of its rule for those who sent it, by its path for those who have a file. No value is repeated.

import { shownText } from '@tunnel/rules/names';
import type * as z from 'zod';

export interface PolicyProblem {
  /** From 1; null: the login, or the whole. */
  readonly rule: number | null;
  readonly ruleName: string | null;
  /** In the policy as it is sent, for the line of a file. */
  readonly path: readonly (string | number)[];
  /** A sentence without its beginning: what and where in the rule. */
  readonly message: string;
}

/** `policy rule 2 (office): …`, `policy login: …`, `policy: …`. */
export const problemText = ({ rule, ruleName, path, message }: PolicyProblem): string => {
  if (rule === null) return path[0] === 'login' ? `policy login: ${message}` : `policy: ${message}`;
  return `policy rule ${rule}${ruleName === null ? '' : ` (${ruleName})`}: ${message}`;
};

/** `written`: what the schema refused. Unknown keys first: a misspelt key is also a missing one, and its name says more. */
export const problemsOfIssues = (
  written: unknown,
  issues: readonly z.core.$ZodIssue[],
): readonly [PolicyProblem, ...PolicyProblem[]] => {
  const found = issues.flatMap(nearestIssues);
  const isUnknown = (issue: z.core.$ZodIssue): boolean => issue.code === 'unrecognized_keys';
  const ordered = [...found.filter(isUnknown), ...found.filter((issue) => !isUnknown(issue))];
  const [first, ...others] = ordered.map((issue) => problemOfIssue(written, issue));
  return [first ?? problemAt(written, [], 'this is not a policy'), ...others];
};

const problemOfIssue = (written: unknown, issue: z.core.$ZodIssue): PolicyProblem => {
  const path = issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
  const inner = withinText(path);
  if (issue.code === 'unrecognized_keys') {
    const full = [...path, String(issue.keys[0])];
    return problemAt(written, full, inner === '' ? issue.message : `${issue.message} in \`${inner}\``);
  }
  return problemAt(written, path, `${inner === '' ? 'it' : `\`${inner}\``} must be ${issue.message}`);
};

/** `path` in a list of rules, or in a table of `login` and `rules`. */
export const problemAt = (written: unknown, path: readonly (string | number)[], message: string): PolicyProblem => {
  const index = ruleIndexOf(path);
  return { rule: index === null ? null : index + 1, ruleName: nameOfRule(written, index), path, message };
};

const ruleIndexOf = ([first, second]: readonly (string | number)[]): number | null => {
  if (typeof first === 'number') return first;
  return first === 'rules' && typeof second === 'number' ? second : null;
};

/** Inside of its rule, or of `login`: what stands before that is said in words. */
const withinText = (path: readonly (string | number)[]): string => {
  const [first, second] = path;
  const isWithin = first === 'login' || typeof first === 'number';
  const from = first === 'rules' && typeof second === 'number' ? 2 : Number(isWithin);
  return path.slice(from).reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? shownText(key) : `${text}.${shownText(key)}`;
  }, '');
};

/** Of what may be no policy at all. */
const nameOfRule = (written: unknown, index: number | null): string | null => {
  if (index === null || typeof written !== 'object' || written === null) return null;
  const rules: unknown = Array.isArray(written) ? written : (written as { rules?: unknown }).rules;
  const rule: unknown = Array.isArray(rules) ? rules[index] : null;
  const name = (rule as { name?: unknown } | null | undefined)?.name;
  return typeof name === 'string' && name !== '' ? shownText(name) : null;
};

/** Of alternatives that all fail, what the one has against it that was most likely meant: one of the right kind. */
const nearestIssues = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code !== 'invalid_union') return [issue];
  const isOfKind = (branch: readonly z.core.$ZodIssue[]): boolean =>
    branch.length > 0 && !branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0);
  const nearest = issue.errors.find(isOfKind);
  if (nearest === undefined) return [issue];
  return nearest.flatMap((inner) => nearestIssues({ ...inner, path: [...issue.path, ...inner.path] }));
};
