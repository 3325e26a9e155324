// Policy errors as text: by rule number for senders, by path for authors of a file. Values are never repeated.

import { shownText } from '@tunnel/rules/names';
import type * as z from 'zod';

export interface PolicyProblem {
  /** Rule number from 1, or null for the login or the whole policy. */
  readonly rule: number | null;
  readonly ruleName: string | null;
  /** Path in the wire form, used to find the line in a file. */
  readonly path: readonly (string | number)[];
  /** Error message without the location prefix. */
  readonly message: string;
}

/** Formats a problem of a policy: `policy rule 2 (office): …`, `policy login: …` or `policy: …`. */
export const problemText = ({ rule, ruleName, path, message }: PolicyProblem): string => {
  if (rule === null) return path[0] === 'login' ? `policy login: ${message}` : `policy: ${message}`;
  return `policy rule ${rule}${ruleName === null ? '' : ` (${ruleName})`}: ${message}`;
};

/**
 * Converts schema issues to problems. `written` is the rejected value. Unknown keys come first: a misspelled key is also reported as
 * missing, and its name helps more.
 */
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

/** `path` points into a list of rules, or into a table with `login` and `rules`. */
export const problemAt = (written: unknown, path: readonly (string | number)[], message: string): PolicyProblem => {
  const index = ruleIndexOf(path);
  return { rule: index === null ? null : index + 1, ruleName: nameOfRule(written, index), path, message };
};

const ruleIndexOf = ([first, second]: readonly (string | number)[]): number | null => {
  if (typeof first === 'number') return first;
  return first === 'rules' && typeof second === 'number' ? second : null;
};

/** Path inside the rule or `login`, without the part that the prefix of the message names. */
const withinText = (path: readonly (string | number)[]): string => {
  const [first, second] = path;
  const isWithin = first === 'login' || typeof first === 'number';
  const from = first === 'rules' && typeof second === 'number' ? 2 : Number(isWithin);
  return path.slice(from).reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? shownText(key) : `${text}.${shownText(key)}`;
  }, '');
};

/** Returns the name of a rule in an unvalidated policy, or null. */
const nameOfRule = (written: unknown, index: number | null): string | null => {
  if (index === null || typeof written !== 'object' || written === null) return null;
  const rules: unknown = Array.isArray(written) ? written : (written as { rules?: unknown }).rules;
  const rule: unknown = Array.isArray(rules) ? rules[index] : null;
  const name = (rule as { name?: unknown } | null | undefined)?.name;
  return typeof name === 'string' && name !== '' ? shownText(name) : null;
};

/** For a failed union, returns the issues of the branch that was most likely meant: the first of the right type. */
const nearestIssues = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code !== 'invalid_union') return [issue];
  const isOfKind = (branch: readonly z.core.$ZodIssue[]): boolean =>
    branch.length > 0 && !branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0);
  const nearest = issue.errors.find(isOfKind);
  if (nearest === undefined) return [issue];
  return nearest.flatMap((inner) => nearestIssues({ ...inner, path: [...issue.path, ...inner.path] }));
};
