// Requests, policies and fake driver results, for tests of the rules.
import { PartField, type RequestHead, requestHeadFromParts, roleOf } from '@tunnel/http1';
import { compilePolicy } from './compile/compile.ts';
import type { Auth, LoginProvider, Policy, Rule } from './policy.ts';
import type {
  Answer,
  HeaderPair,
  LoggedIn,
  Pass,
  PolicyDigests,
  PolicyEffect,
  PolicyEvent,
  PolicyRequest,
} from './policy-step.ts';
import { begin, resume } from './run/evaluate.ts';
import type { OnRule, PolicyLists } from './run/policy-run.ts';

export const NOW = 1_700_000_000_000;

/** Fake digests: only mix their input. A policy gets its cryptography from outside, so the tests do not need real digests. */
export const DIGESTS: PolicyDigests = {
  sha256Hex: (text) => `${text.length}-${[...text].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) >>> 0, 7)}`,
  hmac: (algorithm, key, parts) => {
    let sum = algorithm.length;
    for (const part of [key, ...parts]) for (const byte of part) sum = (sum * 33 + byte) >>> 0;
    return Uint8Array.of(sum & 0xff, (sum >> 8) & 0xff, (sum >> 16) & 0xff, (sum >> 24) & 0xff);
  },
  equal: (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]),
};

export interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly HeaderPair[];
  readonly address?: string;
  readonly scheme?: 'http' | 'https';
  readonly isUpgrade?: boolean;
  readonly bodyLength?: number | null;
}

export const requestOf = ({ headers = [], ...given }: Asked = {}): PolicyRequest => ({
  method: 'GET',
  path: '/',
  host: 'shop.example.com',
  authority: 'shop.example.com',
  scheme: 'https',
  address: '192.0.2.1',
  isUpgrade: false,
  bodyLength: 0,
  requestId: 'req_1',
  ...given,
  headers: headers.map(([name, value]) => new PartField(name, value, roleOf(name))),
});

/** Returns the parsed head of a request. */
export const headOf = ({ method, path, authority, headers }: PolicyRequest): RequestHead => {
  const pairs = headers.map(({ name, value }): HeaderPair => [name, value]);
  const head = requestHeadFromParts({ method, path, authority, headers: pairs, hasBody: false });
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

/** Headers of a browser navigation. */
export const NAVIGATION: readonly HeaderPair[] = [
  ['accept', 'text/html,*/*'],
  ['sec-fetch-mode', 'navigate'],
];

export const LOGIN: LoginProvider = { provider: 'company', session_secs: 28_800, trusted_origins: [] };

export const authOf = (auth: Partial<Auth>): { auth: Auth } => ({ auth: { token_header: 'x-tunnel-token', ...auth } });

export const policyOf = (rules: readonly Rule[], login: LoginProvider | null = null): Policy => ({ login, rules });

export const sessionOf = (session: Partial<LoggedIn> = {}): LoggedIn => ({
  sub: 'sub-1',
  email: 'anna@example.com',
  emailVerified: true,
  claims: {},
  expiresAt: NOW / 1000 + 3600,
  ...session,
});

export type Meet = (effect: PolicyEffect) => PolicyEvent;

export interface Driven {
  readonly outcome: Pass | Answer;
  readonly effects: readonly PolicyEffect[];
}

/** Runs a request through the policy to the end, and answers each effect at once. */
export const drive = (
  policy: Policy | { readonly operator: Policy | null; readonly tunnel: Policy | null },
  request: PolicyRequest,
  meet: Meet = unexpected,
  onRule?: OnRule,
): Driven => {
  return driveCompiled(
    compiledLists('rules' in policy ? { operator: null, tunnel: policy } : policy),
    request,
    meet,
    onRule,
  );
};

export const compiledLists = (given: {
  readonly operator: Policy | null;
  readonly tunnel: Policy | null;
}): PolicyLists => ({
  operator: given.operator === null ? null : compilePolicy(given.operator, DIGESTS, 'operator'),
  tunnel: given.tunnel === null ? null : compilePolicy(given.tunnel, DIGESTS),
});

export const driveCompiled = (
  lists: PolicyLists,
  request: PolicyRequest,
  meet: Meet = unexpected,
  onRule?: OnRule,
): Driven => {
  const effects: PolicyEffect[] = [];
  let step = begin(lists, request, NOW, onRule);
  while (step.kind === 'effect') {
    effects.push(step.effect);
    step = resume(step.state, meet(step.effect), NOW);
  }
  return { outcome: step, effects };
};

const unexpected: Meet = (effect) => {
  throw new Error(`nobody meets ${effect.kind}`);
};

/** Returns `pass`, or the status and error code of the answer: enough for most tests. */
export const verdictOf = ({ outcome }: Driven): string => {
  if (outcome.kind === 'pass') return 'pass';
  const { answer } = outcome;
  return answer.kind === 'own' ? `${answer.response.status}` : `${answer.status} ${answer.fault.code}`;
};

export const headerOf = (headers: readonly HeaderPair[], name: string): string | null =>
  headers.find(([given]) => given.toLowerCase() === name)?.[1] ?? null;
