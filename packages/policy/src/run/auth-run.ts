// Runs an `auth` rule on a request. Its methods are alternatives, tried from cheap to expensive. Checks that take time are effects; the
// request waits for them.

import { fieldValueOf } from '@tunnel/http1';
import type { CompiledAuth } from '../compile/compile.ts';
import { challengeOf, faultAnswer, loginRedirect } from '../compile/policy-answers.ts';
import {
  basicCredentials,
  bearerToken,
  isCrossOrigin,
  isNavigation,
  jwtFits,
  userOfJwt,
  userOfSession,
} from '../login/authentication.ts';
import { clearedCookies, POLICY_PENDING_LOGINS_MAX, pendingLogins, sealedLogins } from '../login/login-cookies.ts';
import { returnPathOf } from '../login/login-machine.ts';
import type { LoginProvider } from '../policy.ts';
import type {
  AuthMethod,
  Identity,
  LoggedIn,
  PolicyAnswer,
  PolicyEffect,
  PolicyEvent,
  PolicyRequest,
} from '../policy-step.ts';

export type AuthStep =
  | { readonly kind: 'effect'; readonly effect: PolicyEffect }
  | { readonly kind: 'in'; readonly identity: Identity }
  | { readonly kind: 'out'; readonly answer: PolicyAnswer };

/** Session from the request's login cookie, decrypted once for all rules. Undefined until then. */
export interface SessionHolder {
  session: LoggedIn | null | undefined;
}

/** Methods in the order of trying: a token is a lookup, a password check takes a tenth of a second. */
type Stage = 'token' | 'login' | 'jwt' | 'basic' | 'nobody';

const into = (user: string, method: AuthMethod): AuthStep => ({ kind: 'in', identity: { user, method } });
const out = (answer: PolicyAnswer): AuthStep => ({ kind: 'out', answer });

export class AuthRun {
  readonly #rule: CompiledAuth;
  readonly #login: LoginProvider | null;
  readonly #request: PolicyRequest;
  readonly #holder: SessionHolder;
  #stage: Stage = 'token';
  /** Session of a signed-in visitor who is not accepted by this rule. */
  #refused: LoggedIn | null = null;
  /**
   * True if the login cookie is valid but another site sent the request. Then only credentials that browsers do not add automatically are
   * accepted.
   */
  #isCrossOrigin = false;
  /** Name of the user in the password check that is in progress. */
  #user = '';

  constructor(rule: CompiledAuth, login: LoginProvider | null, request: PolicyRequest, holder: SessionHolder) {
    this.#rule = rule;
    this.#login = login;
    this.#request = request;
    this.#holder = holder;
  }

  /** Continues the authentication up to the next effect (such as a password check) or the result. */
  next(nowMs: number): AuthStep {
    for (;;) {
      const step = this.#try(nowMs);
      if (step !== null) return step;
    }
  }

  /** Continues the authentication with the result of an effect. Returns null if the event does not belong to the pending effect. */
  resume(event: PolicyEvent, nowMs: number): AuthStep | null {
    switch (event.kind) {
      case 'cookie-opened':
        this.#holder.session = event.session;
        return this.next(nowMs);
      case 'jwt-verified':
        if (event.claims === null || !jwtFits(this.#rule.auth.jwt?.claims, event.claims)) return this.next(nowMs);
        return into(userOfJwt(event.claims), 'jwt');
      case 'password-checked':
        return event.isRight ? into(this.#user, 'basic') : this.next(nowMs);
      case 'login-begun':
        return out(loginRedirect(302, event.location, [...this.#dropped(), ...event.setCookies]));
      default:
        return null;
    }
  }

  #try(nowMs: number): AuthStep | null {
    switch (this.#stage) {
      case 'token':
        this.#stage = 'login';
        return this.#tryToken();
      case 'login':
        return this.#tryLogin(nowMs);
      case 'jwt':
        this.#stage = 'basic';
        return this.#tryJwt();
      case 'basic':
        this.#stage = 'nobody';
        return this.#tryBasic();
      case 'nobody':
        return this.#turnAway();
    }
  }

  #tryToken(): AuthStep | null {
    const { tokens, auth } = this.#rule;
    const token = tokens === null ? null : fieldValueOf(this.#request.headers, auth.token_header);
    const identity = token === null || token === '' ? null : (tokens?.identityOf(token) ?? null);
    return identity === null ? null : { kind: 'in', identity };
  }

  #tryLogin(nowMs: number): AuthStep | null {
    const { people } = this.#rule;
    const login = this.#login;
    if (people !== null && login !== null) {
      const { session } = this.#holder;
      if (session === undefined) return this.#openCookie(login);
      if (session !== null && session.expiresAt * 1000 > nowMs) {
        if (!people.fits(session)) this.#refused = session;
        else if (isCrossOrigin(this.#request, login)) this.#isCrossOrigin = true;
        else return into(userOfSession(session), 'login');
      }
    }
    this.#stage = 'jwt';
    return null;
  }

  #openCookie(login: LoginProvider): AuthStep | null {
    const sealed = sealedLogins(this.#request.headers, this.#request.scheme);
    if (sealed.length > 0) return { kind: 'effect', effect: { kind: 'open-cookie', login, sealed } };
    this.#holder.session = null;
    return null;
  }

  #tryJwt(): AuthStep | null {
    const { jwt } = this.#rule.auth;
    const token = jwt === undefined ? null : bearerToken(this.#request.headers);
    return jwt === undefined || token === null
      ? null
      : { kind: 'effect', effect: { kind: 'verify-jwt', auth: jwt, token } };
  }

  #tryBasic(): AuthStep | null {
    const { basic } = this.#rule.auth;
    if (basic === undefined || this.#isCrossOrigin) return null;
    const given = basicCredentials(this.#request.headers);
    if (given === null) return null;
    const { user, password } = given;
    this.#user = user;
    const hash = Object.hasOwn(basic.users, user) ? (basic.users[user] ?? null) : null;
    return { kind: 'effect', effect: { kind: 'check-password', auth: basic, user, password, hash } };
  }

  #turnAway(): AuthStep {
    if (this.#isCrossOrigin) return out(faultAnswer('POLICY_CROSS_ORIGIN'));
    if (this.#refused !== null) {
      return out(faultAnswer('POLICY_LOGIN_REFUSED', { values: { user: userOfSession(this.#refused) } }));
    }
    if (this.#rule.people !== null && this.#login !== null && isNavigation(this.#request)) {
      const returnPath = returnPathOf(this.#request.path);
      return { kind: 'effect', effect: { kind: 'begin-login', login: this.#login, returnPath } };
    }
    return out(faultAnswer('POLICY_UNAUTHENTICATED', { headers: [challengeOf(this.#rule.auth)] }));
  }

  /** Clears the oldest pending sign-ins of this browser to make room for another. */
  #dropped(): string[] {
    const ids = [...pendingLogins(this.#request.headers, this.#request.scheme).keys()];
    const tooMany = ids.length - (POLICY_PENDING_LOGINS_MAX - 1);
    return clearedCookies(this.#request.scheme, ids.slice(0, Math.max(0, tooMany)));
  }
}
