// Evaluates a policy for one request offline, with the edge's rules: the response, the deciding rule, and the reason. Passwords, tokens and
// webhook signatures of the request are verified; a named user is assumed to have signed in or to send a valid JWT.

import { Fault } from '@tunnel/errors';
import { parseRequestHead, type RequestHead } from '@tunnel/http1';
import {
  applyRequestChanges,
  begin,
  type CompiledPolicy,
  compilePolicy,
  loginCookie,
  type Policy,
  type PolicyEffect,
  type PolicyEvent,
  type PolicyRequest,
  type PolicyStep,
  type RuleRef,
  resume,
} from '@tunnel/policy';
import { policyDigests } from './digests.ts';
import { isPasswordRight } from './password-hashes.ts';
import type { PolicyAbout, TunnelPolicy } from './tunnel-policy.ts';

export interface PolicyTestRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** IP address of the visitor who sends the tested request. */
  readonly address: string;
  /** A user assumed to have signed in, or to send a valid JWT. */
  readonly user?: string | undefined;
  readonly body?: Uint8Array | undefined;
}

export interface TracedRule {
  /** Position of the rule in the policy, starting at 1. */
  readonly index: number;
  readonly name: string | null;
  readonly action: string;
  readonly matched: boolean;
  /** Why the rule did not match the tested request, or the effect of the rule. */
  readonly note: string;
}

export interface PolicyVerdict {
  readonly outcome: 'pass' | 'answer';
  readonly status: number | null;
  readonly code: string | null;
  /** The rule that decided the tested request. Null without such a rule, and for the edge's sign-in paths. */
  readonly rule: Pick<TracedRule, 'index' | 'name' | 'action'> | null;
  readonly location: string | null;
  /** Local service that gets the request: one of `services`, or null for the tunnel's main service. */
  readonly service: string | null;
  /** The tested request as it would be sent to the service. Null if nothing is sent. */
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
  } | null;
  readonly trace: readonly TracedRule[];
}

/** Tests a policy with a made-up request. Throws a Fault for an invalid policy or request. */
export const testPolicy = async (
  policy: TunnelPolicy,
  about: PolicyAbout,
  asked: PolicyTestRequest,
  nowMs: number,
): Promise<PolicyVerdict> => {
  policy.check(about);
  const { policy: sent } = await policy.sent(null, about.services);
  const tested = testedRequest(sent, asked);
  const compiled = compilePolicy(sent, policyDigests);
  const seen: TracedRule[] = [];
  const step = await decide(compiled, tested, nowMs, ({ index, name, action }, matched, note) =>
    seen.push({ index, name, action, matched, note }),
  );
  return verdictOf(step, tested, traceOf(sent, compiled, seen));
};

/** The tested request, with credentials added for the assumed user. */
interface TestedRequest {
  readonly head: RequestHead;
  readonly request: PolicyRequest;
  readonly user: string | null;
  /** Claims of the user assumed for the test. */
  readonly claims: Readonly<Record<string, readonly string[]>>;
  readonly body: Uint8Array;
  /** Name of a header added for the assumed user, in lower case. Null if none was added. */
  readonly madeUp: string | null;
}

const SCHEME = 'https';
const HOST = 'tunnel.example';
/** Placeholder for a test request, in the form of a JWT. The content is never read. */
const ANY_JWT = 'e30.e30.e30';

const testedRequest = (policy: Policy, asked: PolicyTestRequest): TestedRequest => {
  const { method, path, address, user = null, body = new Uint8Array(0) } = asked;
  const has = (name: string): boolean => asked.headers.some(([given]) => given.toLowerCase() === name);
  const credential = user === null ? null : credentialFor(policy, has('authorization'));
  const fields = [
    ...(has('host') ? [] : [['Host', HOST] as const]),
    ...asked.headers,
    ...(body.length === 0 || has('content-length') ? [] : [['Content-Length', String(body.length)] as const]),
    ...(credential === null ? [] : [credential]),
  ];
  const text = [`${method} ${path} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`), '', ''].join(
    '\r\n',
  );
  const head = parseRequestHead(Buffer.from(text, 'utf8').toString('latin1'));
  if (head.kind !== 'request')
    throw new Fault('CLIENT_USAGE', { reason: `an edge rejects this request: ${head.reason}` });
  const request: PolicyRequest = {
    method: head.method,
    path: head.path,
    headers: head.headers,
    host: head.host,
    authority: head.authority,
    scheme: SCHEME,
    address,
    isUpgrade: head.upgrade !== null,
    bodyLength: body.length,
    requestId: 'req_test',
  };
  return { head, request, user, claims: claimsOf(policy), body, madeUp: credential?.[0].toLowerCase() ?? null };
};

/** Returns the claims required by rules that identify users only by claims. The assumed user has all of them, as with a JWT. */
const claimsOf = ({ rules }: Policy): TestedRequest['claims'] => {
  const claims = new Map<string, readonly string[]>();
  for (const rule of rules) {
    const { emails, domains, claims: named } = ('auth' in rule ? rule.auth.login : undefined) ?? {};
    if (emails !== undefined || domains !== undefined) continue;
    for (const [name, values] of Object.entries(named ?? {}))
      claims.set(name, [...(claims.get(name) ?? []), ...values]);
  }
  return Object.fromEntries(claims);
};

/** Returns the header that a browser would send after sign-in, or a program with a JWT. The rules use the header to ask for the user. */
const credentialFor = (policy: Policy, hasAuthorization: boolean): readonly [string, string] | null => {
  if (policy.login !== null) return ['Cookie', loginCookie(SCHEME, 'tested', 60).split(';')[0] ?? ''];
  const takesJwt = policy.rules.some((rule) => 'auth' in rule && rule.auth.jwt !== undefined);
  return takesJwt && !hasAuthorization ? ['Authorization', `Bearer ${ANY_JWT}`] : null;
};

type OnRule = (rule: RuleRef, matched: boolean, note: string) => void;

const decide = async (
  tunnel: CompiledPolicy,
  tested: TestedRequest,
  nowMs: number,
  onRule: OnRule,
): Promise<Exclude<PolicyStep, { kind: 'effect' }>> => {
  let step = begin({ operator: null, tunnel }, tested.request, nowMs, onRule);
  while (step.kind === 'effect') step = resume(step.state, await perform(step.effect, tested, nowMs), nowMs);
  return step;
};

/** Performs an effect of a tested policy (such as a password check) without network access. */
const perform = async (effect: PolicyEffect, tested: TestedRequest, nowMs: number): Promise<PolicyEvent> => {
  const { user, claims, body } = tested;
  switch (effect.kind) {
    case 'check-password':
      return {
        kind: 'password-checked',
        isRight: effect.hash !== null && (await isPasswordRight(effect.hash, effect.password)),
      };
    case 'verify-jwt': {
      if (user === null) return { kind: 'jwt-verified', claims: null };
      const { issuer: iss, audience: aud } = effect.auth;
      return { kind: 'jwt-verified', claims: { ...effect.auth.claims, iss, aud, sub: user } };
    }
    case 'open-cookie': {
      const expiresAt = nowMs / 1000 + effect.login.session_secs;
      const email = user?.includes('@') === true ? user : null;
      const session = user === null ? null : { sub: user, email, emailVerified: true, claims, expiresAt };
      return { kind: 'cookie-opened', session };
    }
    case 'begin-login':
      return { kind: 'login-begun', location: providerOf(effect.login), setCookies: [] };
    case 'finish-login':
      return { kind: 'failed', fault: new Fault('POLICY_LOGIN_STATE') };
    case 'hold-body':
      return body.length > effect.maxBytes ? { kind: 'body-too-large' } : { kind: 'body-held', body };
    case 'take-token':
      // Assumes that the tested request is the first, which every rate limit allows.
      return { kind: 'token-taken', retryAfterSecs: null };
  }
};

/** Names the provider. The exact sign-in URL is unknown without asking the provider. */
const providerOf = (login: NonNullable<Policy['login']>): string =>
  'issuer' in login ? login.issuer : `login provider ${login.provider}`;

// ---- the verdict ----

const verdictOf = (
  step: Exclude<PolicyStep, { kind: 'effect' }>,
  tested: TestedRequest,
  trace: readonly TracedRule[],
): PolicyVerdict => {
  if (step.kind === 'pass') {
    return {
      outcome: 'pass',
      status: null,
      code: null,
      rule: null,
      location: null,
      service: step.changes?.service ?? null,
      request: passedRequest(
        step.changes === null ? tested.head : applyRequestChanges(tested.head, step.changes),
        tested,
      ),
      trace,
    };
  }
  const { answer, rule } = step;
  const named = rule === null ? null : { index: rule.index, name: rule.name, action: rule.action };
  const none = { service: null, request: null };
  if (answer.kind === 'fault') {
    const { status, fault, headers } = answer;
    return { outcome: 'answer', status, code: fault.code, rule: named, location: locationIn(headers), ...none, trace };
  }
  const { status, headers } = answer.response;
  return { outcome: 'answer', status, code: null, rule: named, location: locationIn(headers), ...none, trace };
};

const locationIn = (headers: Iterable<readonly [string, string]>): string | null => {
  for (const [name, value] of headers) if (name.toLowerCase() === 'location') return value;
  return null;
};

const passedRequest = ({ method, path, headers }: RequestHead, { madeUp }: TestedRequest): PolicyVerdict['request'] => {
  const shown: Record<string, string> = {};
  for (const { lower, value } of headers) {
    if (lower === madeUp && (value.includes(ANY_JWT) || value.includes('=tested'))) continue;
    const before = Object.hasOwn(shown, lower) ? `${shown[lower]}, ` : '';
    Object.defineProperty(shown, lower, { value: `${before}${value}`, enumerable: true, configurable: true });
  }
  return { method, path, headers: shown };
};

/** Returns the test result of every rule, in order, including rules that were not reached. */
const traceOf = (policy: Policy, compiled: CompiledPolicy, seen: readonly TracedRule[]): TracedRule[] => {
  const byIndex = new Map(seen.map((traced) => [traced.index, traced]));
  return policy.rules.map((rule, at) => {
    const action = compiled.rules[at]?.ref.action ?? '';
    const unseen = { index: at + 1, name: rule.name ?? null, action, matched: false, note: 'not reached' };
    return byIndex.get(at + 1) ?? unseen;
  });
};
