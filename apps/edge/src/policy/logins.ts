// Visitors' logins: starts a login, completes it, and recognizes the visitor later by a sealed cookie. The rules are in login-machine of
// the policy package. The edge stores nothing about signed-in visitors, so sessions survive restarts and work on other edges with the
// same secret.

import { randomBytes } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import {
  CALLBACK_PATH,
  checkCallback,
  clearedCookies,
  type LoggedIn,
  type LoginProvider,
  loginCookie,
  loginState,
  namedClaims,
  type PendingLogin,
  type Policy,
  type PolicyEffect,
  type PolicyEvent,
  pendingCookie,
  pendingLogin,
  queryValues,
  sessionFrom,
} from '@tunnel/policy';
import { networkOf } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import { BoundedCache, charsOfJson } from './bounded-cache.ts';
import type { CodeFlow } from './code-flow.ts';
import { LOGIN_COOKIE_MAX_BYTES, POLICY_CACHE_CHARS_MAX, POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import type { LoginProviders, Provider } from './login-providers.ts';
import type { OidcCallbackRelay } from './oidc-callback-relay.ts';
import type { SealBinding, SealedTexts, SealPurpose } from './sealed-texts.ts';
import { TokenCache } from './token-cache.ts';

/** How long an opened login cookie is cached before it is decrypted again. */
const LOGIN_COOKIE_KNOWN_MS = 600_000;
/** Maximum number of completed logins that are remembered, so that no login can be completed twice. The oldest is evicted first. */
const LOGINS_USED_KEPT_MAX = 10_000;

export type BeginEffect = Extract<PolicyEffect, { kind: 'begin-login' }>;
export type FinishEffect = Extract<PolicyEffect, { kind: 'finish-login' }>;
export type CookieEffect = Extract<PolicyEffect, { kind: 'open-cookie' }>;

/** The request and the tunnel of a login. Read a property only where needed, because some properties are computed when read. */
export interface LoginSubject {
  /** Policy of the tunnel. Its rules name the claims that a session must contain; null if there are no such rules. */
  readonly policy: Policy | null;
  /**
   * Owner to which sessions are bound: `account …`, `operator`, or the key hash of a group. Sessions become invalid when a name gets a
   * new owner.
   */
  readonly owner: string;
  /** Tenant charged for work and memory, as returned by `tenantKey`. */
  readonly tenant: string;
  /** Requested host name in lower case, without a port. */
  readonly host: string;
  readonly scheme: 'http' | 'https';
  /** Public URL of the tunnel at this host, without a path: `https://shop.example.com:8443`. */
  readonly publicUrl: string;
  /** IP address of the visitor. */
  readonly address: string;
}

export interface LoginsOptions {
  readonly seals: SealedTexts;
  readonly callbackRelay: OidcCallbackRelay;
  readonly providers: LoginProviders;
  readonly codeFlow: CodeFlow;
  /** Returns the public URL of the edge, used with the operator's providers: `https://edge.example.com:8443`. */
  readonly edgeUrl: () => string;
  readonly clock: Pick<Clock, 'now'>;
}

/** A pending login as sealed in its cookie, with the redirect URI that must be sent to the provider again. */
interface Pending extends PendingLogin {
  readonly redirectUri: string;
}

const NOBODY: PolicyEvent = { kind: 'cookie-opened', session: null };
/** Size of the cookie name `__Host-tunnel_login=`, with some reserve. */
const NAME_BYTES = 64;

export class Logins {
  readonly #options: LoginsOptions;
  readonly #opened = new TokenCache<PolicyEvent>({
    entriesMax: POLICY_CACHE_ENTRIES_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  /** Completed logins, by the secret of their state. */
  readonly #used = new BoundedCache<true>({
    entriesMax: LOGINS_USED_KEPT_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** Opens the first of the cookies that is valid and has not expired. `policyId` separates the cache entries of different policies. */
  openCookie({ login, sealed }: CookieEffect, subject: LoginSubject, policyId: number): PolicyEvent {
    const now = this.#options.clock.now();
    const scope = `${policyId} ${subject.host}`;
    for (const text of sealed) {
      const known = this.#opened.get(scope, text, now) ?? this.#open(login, text, scope, subject);
      if (known !== null) return known;
    }
    return NOBODY;
  }

  async begin({ login, returnPath }: BeginEffect, subject: LoginSubject): Promise<PolicyEvent> {
    const { providers, callbackRelay, codeFlow, seals, edgeUrl, clock } = this.#options;
    const provider = providers.find(login, subject.tenant);
    if (provider === null) return { kind: 'failed', fault: unknownProvider() };
    const { scheme, publicUrl } = subject;
    // The login cookie has a different name over http. A visitor who came over http is therefore redirected to the public URL first,
    // because the provider redirects to the public URL after the sign-in.
    if (!publicUrl.startsWith(`${scheme}:`))
      return { kind: 'login-begun', location: publicUrl + returnPath, setCookies: [] };
    const chances = {
      id: randomBytes(4).toString('hex'),
      secret: randomBytes(16).toString('base64url'),
      nonce: randomBytes(24).toString('base64url'),
      verifier: randomBytes(32).toString('base64url'),
    };
    const pending = pendingLogin(chances, returnPath, clock.now());
    const own = loginState(pending);
    const isRelayed = provider.ref.trust === 'operator';
    const redirectUri = (isRelayed ? edgeUrl() : publicUrl) + CALLBACK_PATH;
    const target = { origin: publicUrl, until: pending.expiresAt * 1000 };
    const state = isRelayed ? callbackRelay.stateFor(own, target) : own;
    const { nonce, verifier } = pending;
    try {
      const location = await codeFlow.authorizeUrl(provider, { redirectUri, state, nonce, verifier });
      const sealed = seals.seal(bindingOf('pending', provider, subject), JSON.stringify({ ...pending, redirectUri }));
      return { kind: 'login-begun', location, setCookies: [pendingCookie(scheme, pending.id, sealed)] };
    } catch (error) {
      return { kind: 'failed', fault: Fault.from(error) };
    }
  }

  async finish({ login, query, pending }: FinishEffect, subject: LoginSubject): Promise<PolicyEvent> {
    const { providers, callbackRelay, codeFlow, clock } = this.#options;
    const provider = providers.find(login, subject.tenant);
    if (provider === null) return { kind: 'failed', fault: unknownProvider() };
    const opened = this.#openPending(query, pending, provider, subject);
    const verdict = checkCallback(query, opened, clock.now());
    if (verdict.kind === 'refused') return { kind: 'failed', fault: verdict.fault };
    const begun = verdict.pending as Pending;
    const state = loginState(begun);
    const code = provider.ref.trust === 'operator' ? callbackRelay.codeOf(state, verdict.code) : verdict.code;
    if (code === null) return { kind: 'failed', fault: codeForeign() };
    if (this.#used.get(begun.secret, clock.now()) === true) return { kind: 'failed', fault: stateOver() };
    this.#used.set(subject.tenant, begun.secret, true, begun.expiresAt * 1000);
    const { redirectUri, nonce, verifier, returnPath } = begun;
    const { issuer } = verdict;
    const names = subject.policy === null ? [] : namedClaims(subject.policy);
    try {
      const fields = { redirectUri, state, nonce, verifier, code, issuer };
      // Starting a login is free, and a visitor can send any code. Charge the call to the visitor's network, so that a flood of codes
      // delays only its sender.
      const ref = { ...provider.ref, visitor: networkOf(subject.address) };
      const token = await codeFlow.claimsOf({ ...provider, ref }, fields, names);
      const session = sessionFrom(token, { claims: names, sessionSecs: login.session_secs, nowMs: clock.now() });
      const cookie = session === null ? null : this.#cookieOf(session, login, provider, subject);
      if (cookie === null) return { kind: 'failed', fault: new Fault('POLICY_PROVIDER_AWAY') };
      const setCookies = [cookie, ...clearedCookies(subject.scheme, [begun.id])];
      return { kind: 'login-finished', returnPath, setCookies };
    } catch (error) {
      const fault = Fault.from(error);
      // The provider did not receive the code, so the same callback can be retried when the provider is available again.
      if (fault.code === 'POLICY_PROVIDER_AWAY') this.#used.delete(begun.secret);
      return { kind: 'failed', fault };
    }
  }

  #open(login: LoginProvider, text: string, scope: string, subject: LoginSubject): PolicyEvent | null {
    const { providers, seals, clock } = this.#options;
    const provider = providers.find(login, subject.tenant);
    const plain = provider === null ? null : seals.open(bindingOf('login', provider, subject), text);
    if (plain === null) return null;
    const session = JSON.parse(plain) as LoggedIn;
    const now = clock.now();
    const until = Math.min(session.expiresAt * 1000, now + LOGIN_COOKIE_KNOWN_MS);
    if (until <= now) return null;
    const event: PolicyEvent = { kind: 'cookie-opened', session };
    this.#opened.set(subject.tenant, scope, text, event, until, charsOfJson(plain));
    return event;
  }

  /**
   * Opens only the pending cookie named by the callback. A request head has room for a thousand pending cookies, and decrypting all of
   * them would be expensive.
   */
  #openPending(
    query: string,
    sealedById: ReadonlyMap<string, string>,
    provider: Provider,
    subject: LoginSubject,
  ): ReadonlyMap<string, Pending> {
    const [id = ''] = (queryValues(query)?.get('state') ?? '').split('.', 1);
    const sealed = sealedById.get(id);
    const text =
      sealed === undefined ? null : this.#options.seals.open(bindingOf('pending', provider, subject), sealed);
    const pending = text === null ? null : (JSON.parse(text) as Pending);
    const opened = new Map<string, Pending>();
    // Compare the id: a browser can send any name for a cookie.
    if (pending?.id === id) opened.set(id, pending);
    return opened;
  }

  /** Creates the login cookie. Returns null if the session is too large even without claims. */
  #cookieOf(session: LoggedIn, login: LoginProvider, provider: Provider, subject: LoginSubject): string | null {
    const { scheme, policy } = subject;
    // Try all claim values first, such as all groups of the visitor; then only the values named by rules; then none. A missing value can
    // only reject a visitor, never admit one.
    for (const claims of [session.claims, valuesOfRules(session.claims, policy), {}]) {
      const sealed = this.#options.seals.seal(
        bindingOf('login', provider, subject),
        JSON.stringify({ ...session, claims } satisfies LoggedIn),
      );
      if (sealed.length + NAME_BYTES <= LOGIN_COOKIE_MAX_BYTES) {
        return loginCookie(scheme, sealed, login.session_secs);
      }
    }
    return null;
  }
}

const bindingOf = (
  purpose: SealPurpose,
  { ref, clientId }: Provider,
  { host, owner, tenant }: LoginSubject,
): SealBinding => ({
  purpose,
  parts: [host, owner, ref.issuer, clientId],
  tenant,
});

const valuesOfRules = (claims: LoggedIn['claims'], policy: Policy | null): LoggedIn['claims'] => {
  const named = new Set<string>();
  for (const rule of policy?.rules ?? []) {
    if (!('auth' in rule)) continue;
    for (const values of Object.values(rule.auth.login?.claims ?? {})) for (const value of values) named.add(value);
  }
  const kept = Object.entries(claims).map(([name, values]) => [name, values.filter((value) => named.has(value))]);
  return Object.fromEntries(kept) as LoggedIn['claims'];
};

const unknownProvider = (): Fault =>
  new Fault('POLICY_PROVIDER_AWAY', {}, { internal: 'the operator has no provider with this name' });

const stateOver = (): Fault => new Fault('POLICY_LOGIN_STATE', {}, { internal: 'login: already used' });

const codeForeign = (): Fault =>
  new Fault('POLICY_LOGIN_STATE', {}, { internal: 'login: code belongs to another sign-in' });
