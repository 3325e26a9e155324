// The policy of one tunnel, read and resolved. Problems are reported with their line in the file where possible. The content is private:
// only a short description of the protection is shown.

import { createHmac, randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import { inspect } from 'node:util';
import {
  isShownPolicyKey,
  type PlainPassword,
  type PolicyPath,
  PolicySource,
  readPolicySource,
  resolvePolicy,
} from '@tunnel/config/policy';
import { Fault } from '@tunnel/errors';
import {
  canonicalJson,
  type FilePolicy,
  filePolicySchema,
  guardWords,
  type Policy,
  type PolicyProblem,
  policyHash,
  problemsOfPolicy,
  problemText,
  warningsOfPolicy,
  wirePolicySchema,
} from '@tunnel/policy';
import type { TunnelProtocol } from '@tunnel/protocol';
import { type Secret, sha256Hex } from '@tunnel/runtime';
import { PasswordLines, UNMADE_LINE } from './password-hashes.ts';

type Path = PolicyPath;

/** Facts about the tunnel, needed to check its policy. */
export interface PolicyAbout {
  readonly protocol: TunnelProtocol;
  /** Names allowed in `route`. */
  readonly services: readonly string[];
}

/** A policy as sent to the edge. */
export interface SentPolicy {
  readonly policy: Policy;
  /** Hash that the edge must return. */
  readonly hash: string;
}

/** A source of rules, and the range of rules that came from it. */
interface Part {
  readonly source: PolicySource;
  readonly hasLogin: boolean;
  readonly isList: boolean;
  readonly from: number;
  readonly to: number;
}

/** The part of a policy that contains password hashes. */
interface Hashable {
  readonly rules: readonly { readonly auth?: { readonly basic?: { readonly users: Record<string, string> } } }[];
}

const FINGERPRINT_KEY = randomBytes(32);

export class TunnelPolicy {
  readonly #parts: readonly Part[];
  /** The policy with placeholders instead of password hashes. */
  readonly #policy: Policy;
  readonly #passwords: readonly PlainPassword[];
  readonly #isPartial: boolean;

  private constructor(parts: readonly Part[], policy: Policy, passwords: readonly PlainPassword[]) {
    this.#parts = parts;
    this.#policy = policy;
    this.#passwords = passwords;
    this.#isPartial = passwords.length > 0;
  }

  /** Combines the rules of all sources in order. Only one source may contain a login. Throws a Fault. */
  static of(sources: readonly PolicySource[]): TunnelPolicy {
    return readParts(sources, (...made) => new TunnelPolicy(...made));
  }

  get ruleCount(): number {
    return this.#policy.rules.length;
  }

  /** Short description of the protection: `login company, 2 paths open`. */
  get guard(): string {
    return guardWords(this.#policy);
  }

  get hasLogin(): boolean {
    return this.#policy.login !== null;
  }

  /** Throws a Fault if the policy cannot work on the tunnel. */
  check(about: PolicyAbout): void {
    const [problem] = problemsOfPolicy(this.#policy, judgedWith(about));
    if (problem !== undefined) throw this.#refusal(problem);
  }

  warnings(about: PolicyAbout): readonly string[] {
    // Warnings name the rule by number, because readers of the output may not have the file at hand.
    return warningsOfPolicy(this.#policy, judgedWith(about)).map((warning) =>
      warning.rule === null ? warning.message : problemText(warning).replace(/^policy /, ''),
    );
  }

  /** Keyed hash, equal for two policies that would be sent identically. Reveals nothing about their content. */
  get fingerprint(): string {
    const passwords = this.#passwords.map(({ rule, user, password }) => [rule, user, password.reveal()]);
    return createHmac('sha256', FINGERPRINT_KEY)
      .update(canonicalJson({ policy: this.#policy, passwords }))
      .digest('hex');
  }

  /** Returns the policy with hashed passwords. `lines` caches hashes, even across a reload of the file. */
  async sent(groupKey: Secret | null, services: readonly string[], lines = new PasswordLines()): Promise<SentPolicy> {
    const policy = this.#isPartial ? await this.#hashed(groupKey, lines) : this.#policy;
    return { policy, hash: policyHash(policy, services, sha256Hex) };
  }

  /** Returns a copy with hashed passwords. Other secrets stay as they are. */
  async #hashed(groupKey: Secret | null, lines: PasswordLines): Promise<Policy> {
    const policy = structuredClone(this.#policy) as unknown as Hashable;
    for (const { rule, user, password } of this.#passwords) {
      const users = policy.rules[rule]?.auth?.basic?.users;
      if (users !== undefined) users[user] = await lines.lineOf(user, password, groupKey);
    }
    return policy as unknown as Policy;
  }

  /** Reports a problem with the line in the file, or with the rule's number if there is no file. */
  #refusal(problem: PolicyProblem): Fault {
    const { source, inner } = this.#sourceOf(problem.path);
    const position = source.positionOf(inner);
    if (position === null) return new Fault('CLIENT_USAGE', { reason: problemText(problem) });
    return new Fault('CONFIG_SYNTAX', { ...position, reason: problem.message });
  }

  /** Finds the source of a path in the policy, and the path within the source. */
  #sourceOf([head, index, ...rest]: Path): { readonly source: PolicySource; readonly inner: Path } {
    const [first] = this.#parts;
    if (first === undefined) throw new Error('a policy has no rules and no source');
    if (head === 'rules' && typeof index === 'number') {
      const part = this.#parts.find(({ to }) => index < to) ?? first;
      const own = index - part.from;
      return { source: part.source, inner: part.isList ? [own, ...rest] : ['rules', own, ...rest] };
    }
    const { source } = (head === 'login' ? this.#parts.find(({ hasLogin }) => hasLogin) : undefined) ?? first;
    return { source, inner: head === undefined ? [] : [head, ...(index === undefined ? [] : [index]), ...rest] };
  }

  toJSON(): string {
    return `[policy: ${this.guard}]`;
  }

  [inspect.custom](): string {
    return this.toJSON();
  }
}

type Make = (parts: readonly Part[], policy: Policy, passwords: readonly PlainPassword[]) => TunnelPolicy;

const readParts = (sources: readonly PolicySource[], make: Make): TunnelPolicy => {
  const parts: Part[] = [];
  const rules: unknown[] = [];
  const passwords: PlainPassword[] = [];
  let login: unknown = null;
  for (const source of sources) {
    const written = readForm(source);
    const from = rules.length;
    const part = {
      source,
      hasLogin: written.login !== null,
      isList: written.isList,
      from,
      to: from + written.rules.length,
    };
    const at = {
      source,
      rule: (index: number): Path => (part.isList ? [index] : ['rules', index]),
      unmadeLine: UNMADE_LINE,
    };
    const resolved = resolvePolicy(written.login, written.rules, at);
    if (resolved.login !== null && login !== null) throw source.refuse(['login'], 'given once', 'two');
    login ??= resolved.login;
    rules.push(...resolved.rules);
    passwords.push(...resolved.passwords.map((password) => ({ ...password, rule: password.rule + from })));
    parts.push(part);
  }
  return make(parts, wirePolicyOf({ login, rules }, parts), passwords);
};

interface Written {
  readonly isList: boolean;
  readonly login: Readonly<Record<string, unknown>> | null;
  readonly rules: readonly Readonly<Record<string, unknown>>[];
}

const readForm = (source: PolicySource): Written => {
  const parsed = filePolicySchema.safeParse(source.value);
  if (!parsed.success) throw source.refuseIssues(parsed.error.issues, isShownPolicyKey);
  const { login, rules } = parsed.data as unknown as Omit<Written, 'isList'>;
  return { isList: Array.isArray(source.value), login, rules };
};

/** Fills in defaults. An error here means that the policy was valid as written, but not with the values of its files and variables. */
const wirePolicyOf = (policy: unknown, parts: readonly Part[]): Policy => {
  const parsed = wirePolicySchema.safeParse(policy);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const [head, index, ...rest] = (issue?.path ?? []) as Path;
  const part = parts.find(({ to }) => head === 'rules' && Number(index) < to) ?? parts[0];
  if (part === undefined || issue === undefined) throw new Error('a policy has no rules and no source');
  const own = head === 'rules' ? [...(part.isList ? [] : ['rules']), Number(index) - part.from, ...rest] : [];
  throw part.source.refuse(own, issue.message);
};

/** Protocol by which the rules are judged. */
const JUDGED_AS = { http: 'http', https: 'http', tcp: 'tcp', tls: 'tcp', udp: 'udp' } as const;

const judgedWith = ({ protocol, services }: PolicyAbout) => {
  if (protocol === 'p2p') throw new Fault('CLIENT_USAGE', { reason: 'policy is for http, tcp and udp tunnels' });
  return { protocol: JUDGED_AS[protocol], services };
};

// ---- reading a policy ----

/** A file of rules (relative to the current folder), a list of rules, `{ login, rules }`, or the result of `readPolicyFile`. */
export type PolicyInput = TunnelPolicy | FilePolicy | string;

/** Throws a Fault for an invalid policy. */
export const policyFrom = (given: PolicyInput): TunnelPolicy => {
  if (given instanceof TunnelPolicy) return given;
  if (typeof given === 'string') return readPolicyFile(given);
  return TunnelPolicy.of([policyValue(given)]);
};

const keyText = (path: Path): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');

const policyValue = (value: unknown): PolicySource =>
  new PolicySource({
    value,
    file: null,
    line: () => 0,
    key: keyText,
    name: 'policy',
    folder: process.cwd(),
    env: process.env,
    home: homedir(),
  });

/** Throws a Fault for an unreadable or invalid file. */
export const readPolicyFile = (
  file: string,
  {
    shown = file,
    env = process.env,
    home = homedir(),
  }: { shown?: string; env?: NodeJS.ProcessEnv; home?: string } = {},
): TunnelPolicy => TunnelPolicy.of([readPolicySource({ file, shown, env, home })]);
