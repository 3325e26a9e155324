// Logins of visitors: begun, ended, and known again by a sealed cookie. The rules of a login are login-machine of the policy package; nothing is kept here of
// anybody who is logged in, so restarts and other edges with the same secret know them, too.

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

/** an opened login cookie is not opened again before this */
const LOGIN_COOKIE_KNOWN_MS = 600_000;
/** logins that have ended, kept so that none ends twice; the oldest is forgotten first */
const LOGINS_USED_KEPT_MAX = 10_000;

export type BeginEffect = Extract<PolicyEffect, { kind: 'begin-login' }>;
export type FinishEffect = Extract<PolicyEffect, { kind: 'finish-login' }>;
export type CookieEffect = Extract<PolicyEffect, { kind: 'open-cookie' }>;

/** Of the request, and of the tunnel that it is for; each is asked for where it is needed, as some of it must be made first. */
export interface LoginSubject {
  /** For the claims that its rules name; null: none do. */
  readonly policy: Policy | null;
  /** `account …`, `operator`, and of a group its key hash: a name that changes hands takes no session with it. */
  readonly owner: string;
  /** Whom work and memory for it are counted for, as `tenantKey` has it. */
  readonly tenant: string;
  /** Lower case, without a port. */
  readonly host: string;
  readonly scheme: 'http' | 'https';
  /** Where the public reaches the tunnel at this host, without a path: `https://shop.example.com:8443`. */
  readonly publicUrl: string;
  /** The visitor's. */
  readonly address: string;
}

export interface LoginsOptions {
  readonly seals: SealedTexts;
  readonly callbackRelay: OidcCallbackRelay;
  readonly providers: LoginProviders;
  readonly codeFlow: CodeFlow;
  /** Of the edge itself, for the operator's providers: `https://edge.example.com:8443`. */
  readonly edgeUrl: () => string;
  readonly clock: Pick<Clock, 'now'>;
}

/** As it is sealed: with what the provider must be told again. */
interface Pending extends PendingLogin {
  readonly redirectUri: string;
}

const NOBODY: PolicyEvent = { kind: 'cookie-opened', session: null };
/** Of `__Host-tunnel_login=`, and some to spare. */
const NAME_BYTES = 64;

export class Logins {
  readonly #options: LoginsOptions;
  readonly #opened = new TokenCache<PolicyEvent>({
    entriesMax: POLICY_CACHE_ENTRIES_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  /** By the secret of their state. */
  readonly #used = new BoundedCache<true>({
    entriesMax: LOGINS_USED_KEPT_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** The first of them that opens and is not over. `policyId`: what is known under one policy is unknown under the next. */
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
    // The cookie of a login has another name over http: who came that way begins anew where the provider sends people to.
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
      // A login that is begun costs nothing, and any code may come with it: whoever sends many waits for itself.
      const ref = { ...provider.ref, visitor: networkOf(subject.address) };
      const token = await codeFlow.claimsOf({ ...provider, ref }, fields, names);
      const session = sessionFrom(token, { claims: names, sessionSecs: login.session_secs, nowMs: clock.now() });
      const cookie = session === null ? null : this.#cookieOf(session, login, provider, subject);
      if (cookie === null) return { kind: 'failed', fault: new Fault('POLICY_PROVIDER_AWAY') };
      const setCookies = [cookie, ...clearedCookies(subject.scheme, [begun.id])];
      return { kind: 'login-finished', returnPath, setCookies };
    } catch (error) {
      const fault = Fault.from(error);
      // Nobody took the code: the same callback may be tried again while the provider comes back.
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

  /** The one that the callback names alone: a head has room for a thousand of them, and each would be a key to try. */
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
    // The name of a cookie is whatever its browser says.
    if (pending?.id === id) opened.set(id, pending);
    return opened;
  }

  /** null: it would not fit a cookie, whatever is left out. */
  #cookieOf(session: LoggedIn, login: LoginProvider, provider: Provider, subject: LoginSubject): string | null {
    const { scheme, policy } = subject;
    // First of all groups that somebody is in, then of those that rules name, then of none: who is left out is let in nowhere by them.
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
