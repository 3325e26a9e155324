// The operator's rules, which apply to every tunnel of the edge. The file has the format of a tunnel's policy file, without the settings
// that belong to a single tunnel.

import { homedir } from 'node:os';
import { ConfigProblem } from '@tunnel/config/layers';
import {
  isShownPolicyKey,
  type PolicyPath,
  type PolicySource,
  readPolicySource,
  resolvePolicy,
} from '@tunnel/config/policy';
import {
  type Auth,
  filePolicySchema,
  type Policy,
  problemsOfPolicy,
  problemText,
  warningsOfPolicy,
  wirePolicySchema,
} from '@tunnel/policy';
import { hashPassword } from './password-hash.ts';

/** Context for validating the operator's file: the rules apply to tunnels of every kind, and cannot refer to a tunnel's services. */
const SUBJECT = { protocol: 'http', services: [], isOperator: true } as const;

/** Reads the operator's rules. Returns null if `file` is ''. Throws a ConfigProblem that names the line. */
export const readOperatorPolicy = (file: string): Policy | null => {
  if (file === '') return null;
  const source = readPolicySource({ file, env: process.env, home: homedir() });
  const parsed = filePolicySchema.safeParse(source.value);
  if (!parsed.success) throw source.refuseIssues(parsed.error.issues, isShownPolicyKey);
  const { login, rules } = parsed.data as unknown as Written;
  if (login !== null) throw problemAt(source, ['login'], "the operator's policy cannot use `login`");
  const policy = wirePolicyOf(source, rules);
  const [problem] = problemsOfPolicy(policy, SUBJECT);
  if (problem !== undefined) throw problemAt(source, pathIn(source, problem.path), problem.message);
  return policy;
};

/** Returns warnings about rules that are allowed but likely mistakes. */
export const operatorWarnings = (policy: Policy): string[] => warningsOfPolicy(policy, SUBJECT).map(problemText);

type Table = Readonly<Record<string, unknown>>;

interface Written {
  readonly login: Table | null;
  readonly rules: readonly Table[];
}

/** Placeholder for a password hash until the hash is computed: has the usual length, and no password matches. */
const UNMADE_LINE = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Converts the rules of the file to a policy as sent on the wire: resolves secrets, hashes passwords and fills in defaults. */
const wirePolicyOf = (source: PolicySource, rules: readonly Table[]): Policy => {
  const outline = {
    source,
    rule: (index: number): PolicyPath => pathIn(source, ['rules', index]),
    unmadeLine: UNMADE_LINE,
  };
  const { rules: resolved, passwords } = resolvePolicy(null, rules, outline);
  const parsed = wirePolicySchema.safeParse({ login: null, rules: resolved });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw source.refuse(pathIn(source, (issue?.path ?? []) as PolicyPath), issue?.message ?? 'a policy');
  }
  const policy = structuredClone(parsed.data) as Policy;
  for (const { rule, user, password } of passwords) {
    const { auth } = policy.rules[rule] as { readonly auth: Auth };
    Object.assign(auth.basic?.users ?? {}, { [user]: hashPassword(password.reveal()) });
  }
  return policy;
};

/**
 * Converts the path of a value in the policy to its path in the file. If the file is just a list of rules, the path has no leading
 * `rules`.
 */
const pathIn = ({ value }: PolicySource, path: PolicyPath): PolicyPath =>
  Array.isArray(value) && path[0] === 'rules' ? path.slice(1) : path;

const problemAt = (source: PolicySource, path: PolicyPath, reason: string): ConfigProblem => {
  const { file, line } = source.positionOf(path) ?? { file: '', line: 0 };
  return new ConfigProblem('CONFIG_SYNTAX', { file, line, reason });
};
