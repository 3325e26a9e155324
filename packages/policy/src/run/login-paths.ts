// The edge's two paths on a tunnel with a login provider: the OAuth callback and the logout page.
import { fieldValueOf } from '@tunnel/http1';
import { faultAnswer, loginRedirect, logoutPage } from '../compile/policy-answers.ts';
import { isOwnOrigin, userOfSession } from '../login/authentication.ts';
import { clearedCookies, clearedLoginCookie, pendingLogins, sealedLogins } from '../login/login-cookies.ts';
import { CALLBACK_PATH, LOGOUT_PATH, returnPathOf } from '../login/login-machine.ts';
import type { LoginProvider } from '../policy.ts';
import type { PolicyAnswer, PolicyEffect, PolicyEvent, PolicyRequest } from '../policy-step.ts';
import type { SessionHolder } from './auth-run.ts';

export type LoginPath = 'callback' | 'logout';

/** Returns null for a path of the service. Only the exact spelling counts, because no link uses another. */
export const matchLoginPath = (path: string): LoginPath | null => {
  if (!path.startsWith('/.tunnel/')) return null;
  const [plain] = path.split('?', 1);
  if (plain === CALLBACK_PATH) return 'callback';
  return plain === LOGOUT_PATH ? 'logout' : null;
};

export const answerLoginPath = (
  which: LoginPath,
  request: PolicyRequest,
  login: LoginProvider,
  holder: SessionHolder,
  nowMs: number,
): PolicyAnswer | PolicyEffect => {
  if (which === 'callback') return finishLogin(request, login);
  switch (request.method) {
    case 'GET':
    case 'HEAD':
      return askWhetherToLogOut(request, login, holder, nowMs);
    case 'POST':
      return logOut(request);
    default:
      return faultAnswer('POLICY_DENIED', { status: 405, headers: [['allow', 'GET, HEAD, POST']] });
  }
};

const finishLogin = (request: PolicyRequest, login: LoginProvider): PolicyAnswer | PolicyEffect => {
  // A code can be used once, so a HEAD request must not use it.
  if (request.method !== 'GET') return faultAnswer('POLICY_LOGIN_STATE');
  const start = request.path.indexOf('?');
  const query = start === -1 ? '' : request.path.slice(start);
  return { kind: 'finish-login', login, query, pending: pendingLogins(request.headers, request.scheme) };
};

const askWhetherToLogOut = (
  request: PolicyRequest,
  login: LoginProvider,
  { session }: SessionHolder,
  nowMs: number,
): PolicyAnswer | PolicyEffect => {
  if (session === undefined) {
    const sealed = sealedLogins(request.headers, request.scheme);
    return sealed.length === 0 ? logoutPage(null) : { kind: 'open-cookie', login, sealed };
  }
  const isAlive = session !== null && session.expiresAt * 1000 > nowMs;
  return logoutPage(isAlive ? userOfSession(session) : null);
};

/** Accepts only the button on the edge's page, so that no other site can sign visitors out. */
const logOut = (request: PolicyRequest): PolicyAnswer => {
  const origin = fieldValueOf(request.headers, 'origin');
  if (origin === null || !isOwnOrigin(request, origin)) return faultAnswer('POLICY_CROSS_ORIGIN');
  const { scheme } = request;
  const pending = clearedCookies(scheme, pendingLogins(request.headers, scheme).keys());
  return loginRedirect(303, '/', [clearedLoginCookie(scheme), ...pending]);
};

/** Returns null if the session is now known and the path must be evaluated again. */
export const resumeLoginPath = (event: PolicyEvent, holder: SessionHolder): PolicyAnswer | null => {
  if (event.kind === 'login-finished') return loginRedirect(302, returnPathOf(event.returnPath), event.setCookies);
  if (event.kind === 'cookie-opened') holder.session = event.session;
  return null;
};
