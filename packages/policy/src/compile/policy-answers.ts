// Responses that a rule sends to visitors: error pages of the catalogue, responses written by the tunnel's owner, and sign-in pages.
import { Fault, type FaultValues } from '@tunnel/errors';
import { type EdgeResponse, pageText, renderError } from '@tunnel/http1';
import { isEdgeSetCookie } from '../login/login-cookies.ts';
import { LOGOUT_PATH } from '../login/login-machine.ts';
import type { Actions, Auth } from '../policy.ts';
import type { HeaderPair, PolicyAnswer, PolicyEffect } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';

type PolicyCode =
  | 'POLICY_DENIED'
  | 'POLICY_UNAUTHENTICATED'
  | 'POLICY_RATE_LIMITED'
  | 'POLICY_BODY_TOO_LARGE'
  | 'POLICY_WEBHOOK_REFUSED'
  | 'POLICY_CROSS_ORIGIN'
  | 'POLICY_LOGIN_REFUSED'
  | 'POLICY_LOGIN_STATE';

export interface AnswerExtras {
  readonly values?: FaultValues;
  readonly status?: number;
  readonly headers?: readonly HeaderPair[];
  readonly retryAfterSecs?: number | undefined;
}

export const faultAnswer = (code: PolicyCode, extras: AnswerExtras = {}): PolicyAnswer =>
  answerOfFault(extras.values === undefined ? sharedFault(code) : new Fault(code, extras.values), extras);

/**
 * Faults without values, created once per code. A new fault captures a stack trace, which is too expensive during a flood of rejected
 * requests.
 */
const FAULTS = new Map<PolicyCode, Fault>();

const sharedFault = (code: PolicyCode): Fault => {
  const known = FAULTS.get(code) ?? new Fault(code);
  FAULTS.set(code, known);
  return known;
};

export const answerOfFault = (
  fault: Fault,
  { status, headers = [], retryAfterSecs }: AnswerExtras = {},
): PolicyAnswer => ({
  kind: 'fault',
  fault,
  status: status ?? fault.status,
  headers,
  retryAfterSecs,
});

/** Response if the placeholders of a rule expand beyond the length limit. */
export const TOO_LONG = answerOfFault(
  new Fault('HTTP_HEAD_TOO_LARGE', { reason: 'the result of the rules of this tunnel is too long' }),
);

export const isAnswer = (next: PolicyAnswer | PolicyEffect): next is PolicyAnswer =>
  next.kind === 'fault' || next.kind === 'own';

/** Returns true for a response of the sign-in flow, which sets an edge cookie. */
export const setsEdgeCookie = (answer: PolicyAnswer): boolean =>
  answer.kind === 'own' &&
  answer.response.headers.some(([name, value]) => name === 'set-cookie' && isEdgeSetCookie(value));

/** Renders a response as an HTML page or as JSON, depending on `accept`. Response edits are applied afterwards. */
export const renderPolicyAnswer = (answer: PolicyAnswer, accept: string | null): EdgeResponse => {
  if (answer.kind === 'own') return answer.response;
  const { fault, status, headers, retryAfterSecs } = answer;
  const { code, message, next } = fault;
  // A visitor who is signed in with the wrong account needs a way to sign out.
  const button = code === 'POLICY_LOGIN_REFUSED' ? { action: LOGOUT_PATH, label: 'Sign out' } : undefined;
  const page = renderError({ code, status, message, next, accept, retryAfterSecs, button });
  return { status: page.status, headers: [...page.headers, ...headers], body: page.body };
};

const own = (status: number, headers: readonly HeaderPair[], body = ''): PolicyAnswer => ({
  kind: 'own',
  response: { status, headers, body },
});

/** Builds the response of a `respond` rule. The response is no error of the edge, so it has no `X-Tunnel-Error` field. */
export const respondAnswer = ({ status, body, content_type, headers = {} }: Actions['respond']): PolicyAnswer => {
  const bytes = byteText(body);
  const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  const needsCharset = /^text\/[^;]*$/i.test(content_type);
  const type: HeaderPair[] =
    isNamed || bytes === '' ? [] : [['content-type', needsCharset ? `${content_type}; charset=utf-8` : content_type]];
  const given = Object.entries(headers).map(([name, value]): HeaderPair => [name.toLowerCase(), byteText(value)]);
  return own(status, [...type, ...given], bytes);
};

export const redirectAnswer = (status: number, location: string): PolicyAnswer => own(status, [['location', location]]);

// ---- authentication ----

/** Returns one WWW-Authenticate field with every challenge of the rule. RFC 9110 defines the field as a list. */
export const challengeOf = (auth: Auth): HeaderPair => {
  const realm = `realm="${(auth.basic?.realm ?? 'tunnel').replace(/["\\]/g, '\\$&')}"`;
  const schemes: string[] = [];
  if (auth.basic !== undefined) schemes.push(`Basic ${byteText(realm)}, charset="UTF-8"`);
  if (auth.jwt !== undefined) schemes.push('Bearer realm="tunnel"');
  // The two schemes are not registered. They name the missing credential, and no browser prompts for a password because of them.
  if (auth.tokens !== undefined) schemes.push(`Tunnel-Token header="${auth.token_header}"`);
  if (auth.login !== undefined) schemes.push('Tunnel-Login realm="tunnel"');
  return ['www-authenticate', schemes.join(', ')];
};

// ---- sign-in ----

/** Redirects with cookies. `no-store` keeps caches from storing the cookies or serving them to another visitor. */
export const loginRedirect = (status: 302 | 303, location: string, setCookies: readonly string[]): PolicyAnswer =>
  own(status, [
    ['location', location],
    ['cache-control', 'no-store'],
    ...setCookies.map((value): HeaderPair => ['set-cookie', value]),
  ]);

/** Page of the logout path. `user` is null if the visitor is not signed in. */
export const logoutPage = (user: string | null): PolicyAnswer => {
  const words =
    user === null
      ? {
          heading: 'you are not signed in',
          text: 'Open the page you want to visit. You are asked to sign in if needed.',
        }
      : {
          heading: `you are signed in as ${user}`,
          text: 'Signing out ends the session for this address only. You stay signed in at your sign-in provider.',
          button: { action: LOGOUT_PATH, label: 'Sign out' },
        };
  return own(
    200,
    [
      ['content-type', 'text/html; charset=utf-8'],
      ['cache-control', 'no-store'],
      ['x-content-type-options', 'nosniff'],
      // `frame-ancestors 'none'` prevents clickjacking from another site. `form-action` is absent because browsers also apply it to
      // redirects: the form redirects to `/`, and `/` redirects to the provider.
      ['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"],
    ],
    pageText({ title: 'Sign out', ...words }),
  );
};
