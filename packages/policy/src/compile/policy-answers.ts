// What visitors read whom a rule answers: the pages of the catalogue, the owner's own words, and the pages of a login.
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

/** Strangers come in floods, and a fault takes a trace of the stack: those that say the same to everybody are made once. */
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

/** What its rules would write of the visitor's own words is longer than anybody would read. */
export const TOO_LONG = answerOfFault(
  new Fault('HTTP_HEAD_TOO_LARGE', { reason: 'what the rules of this tunnel would make of it is too long' }),
);

export const isAnswer = (next: PolicyAnswer | PolicyEffect): next is PolicyAnswer =>
  next.kind === 'fault' || next.kind === 'own';

/** One of the way through a login. */
export const setsEdgeCookie = (answer: PolicyAnswer): boolean =>
  answer.kind === 'own' &&
  answer.response.headers.some(([name, value]) => name === 'set-cookie' && isEdgeSetCookie(value));

/** As one response: a page, or JSON to whoever would rather read that (`accept`). Notes come after it. */
export const renderPolicyAnswer = (answer: PolicyAnswer, accept: string | null): EdgeResponse => {
  if (answer.kind === 'own') return answer.response;
  const { fault, status, headers, retryAfterSecs } = answer;
  const { code, message, next } = fault;
  // Whoever is signed in as somebody else must find the way out.
  const button = code === 'POLICY_LOGIN_REFUSED' ? { action: LOGOUT_PATH, label: 'Log out' } : undefined;
  const page = renderError({ code, status, message, next, accept, retryAfterSecs, button });
  return { status: page.status, headers: [...page.headers, ...headers], body: page.body };
};

const own = (status: number, headers: readonly HeaderPair[], body = ''): PolicyAnswer => ({
  kind: 'own',
  response: { status, headers, body },
});

/** The owner's words: not an error of the edge, so without its mark. */
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

// ---- who somebody is ----

/** One field with all of them: RFC 9110 has it as a list. */
export const challengeOf = (auth: Auth): HeaderPair => {
  const realm = `realm="${(auth.basic?.realm ?? 'tunnel').replace(/["\\]/g, '\\$&')}"`;
  const schemes: string[] = [];
  if (auth.basic !== undefined) schemes.push(`Basic ${byteText(realm)}, charset="UTF-8"`);
  if (auth.jwt !== undefined) schemes.push('Bearer realm="tunnel"');
  // No schemes of the registry: they name what is missing, and no browser asks for a password because of them.
  if (auth.tokens !== undefined) schemes.push(`Tunnel-Token header="${auth.token_header}"`);
  if (auth.login !== undefined) schemes.push('Tunnel-Login realm="tunnel"');
  return ['www-authenticate', schemes.join(', ')];
};

// ---- the way through a login ----

/** No cache may keep an answer that sets cookies, or hand it to somebody else. */
export const loginRedirect = (status: 302 | 303, location: string, setCookies: readonly string[]): PolicyAnswer =>
  own(status, [
    ['location', location],
    ['cache-control', 'no-store'],
    ...setCookies.map((value): HeaderPair => ['set-cookie', value]),
  ]);

/** `user` null: nobody is signed in, and there is nothing to end. */
export const logoutPage = (user: string | null): PolicyAnswer => {
  const words =
    user === null
      ? {
          heading: 'you are not signed in here',
          text: 'Open the address that you want: you are asked to sign in where it is needed.',
        }
      : {
          heading: `you are signed in as ${user}`,
          text: 'Logging out ends this on this address only; at your login provider you stay signed in.',
          button: { action: LOGOUT_PATH, label: 'Log out' },
        };
  return own(
    200,
    [
      ['content-type', 'text/html; charset=utf-8'],
      ['cache-control', 'no-store'],
      ['x-content-type-options', 'nosniff'],
      // In no frame of another site: a click on the button must be meant. No `form-action`: browsers hold it against redirects, too, and the way from here
      // leads to `/`, which sends on to the provider.
      ['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"],
    ],
    pageText({ title: 'Log out', ...words }),
  );
};
