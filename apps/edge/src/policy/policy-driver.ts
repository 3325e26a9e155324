// Does what rules need done before they can go on: checks passwords and tokens, opens cookies, leads logins, counts requests. It holds no
// rule; what it answers synchronously costs a request no turn of the event loop.

import { Fault } from '@tunnel/errors';
import type { Policy, PolicyEffect, PolicyEvent } from '@tunnel/policy';
import { type Clock, type Logger, LogLimiter, type NameLookup, type Secret } from '@tunnel/runtime';
import { CodeFlow } from './code-flow.ts';
import type { ConnectionAuthCache } from './connection-auth-cache.ts';
import { JwtVerifier } from './jwt-verifier.ts';
import { LimiterTables } from './limiter-tables.ts';
import { LoginProviders, type Provider } from './login-providers.ts';
import { type LoginSubject, Logins } from './logins.ts';
import { OidcCallbackRelay } from './oidc-callback-relay.ts';
import { type Leaving, PasswordChecks, type PasswordChecksOptions, type PasswordResult } from './password-checks.ts';
import { ProviderCalls, type ProviderResult } from './provider-calls.ts';
import { ProviderDocuments } from './provider-documents.ts';
import { SealedTexts } from './sealed-texts.ts';

export interface PolicyDriverOptions {
  readonly clock: Clock;
  /** Told of providers that fail: their tunnels' visitors read only that they do. */
  readonly logger?: Logger | undefined;
  /** The first one seals, all of them open. */
  readonly loginSecrets: readonly Secret[];
  /** `[[policy.login]]`, by name. */
  readonly providers: ReadonlyMap<string, Provider>;
  /** The operator's list: its own issuers are trusted as its providers are. */
  readonly operatorPolicy: Policy | null;
  /** Tenants' providers at private addresses, and over http. */
  readonly allowPrivate: boolean;
  /** Where the public reaches the edge itself: `https://edge.example.com:8443`. */
  readonly edgeUrl: () => string;
  readonly lookup?: NameLookup | undefined;
  /** Certificates to trust instead of the usual authorities'. */
  readonly ca?: string | undefined;
  /** The check of one password, for tests that count. */
  readonly checkPassword?: PasswordChecksOptions['check'];
}

/** What an effect is about: the request, and the route that it is for. */
export interface EffectSubject extends LoginSubject {
  /** What the route is served under: caches and limiters are its own and end with it. One object for each route and revision. */
  readonly served: object;
  /** Distinct for each route, and the same whatever policy it has. */
  readonly routeKey: string;
}

/** Who waits. */
export interface PolicyVisitor extends Leaving {
  /** Of its connection; without one each of its requests stands for itself. */
  readonly authCache?: ConnectionAuthCache;
}

/** What is not counted or held, but found out. */
type FoundOut = Exclude<PolicyEffect, { kind: 'hold-body' | 'take-token' }>;

export interface PolicyDriverMetrics {
  readonly passwordChecks: Readonly<Record<PasswordResult, number>>;
  readonly providerRequests: Readonly<Record<ProviderResult, number>>;
  readonly limiterKeys: number;
}

export class PolicyDriver {
  /** For `edge.<domain>/.tunnel/callback`. */
  readonly callbackRelay: OidcCallbackRelay;
  readonly #passwords: PasswordChecks;
  readonly #calls: ProviderCalls;
  readonly #jwts: JwtVerifier;
  readonly #providers: LoginProviders;
  readonly #logins: Logins;
  readonly #limiters: LimiterTables;
  readonly #clock: Clock;
  readonly #operatorAuths: ReadonlySet<object>;
  readonly #log: LogLimiter | null;
  readonly #ids = new WeakMap<object, number>();
  #lastId = 0;

  constructor(options: PolicyDriverOptions) {
    const { clock, loginSecrets, edgeUrl, operatorPolicy, logger } = options;
    this.#clock = clock;
    const seals = new SealedTexts(loginSecrets);
    this.callbackRelay = new OidcCallbackRelay(seals, clock);
    this.#passwords = new PasswordChecks({ clock, ...(options.checkPassword && { check: options.checkPassword }) });
    this.#calls = new ProviderCalls(options);
    const documents = new ProviderDocuments(this.#calls, clock);
    this.#jwts = new JwtVerifier(documents, clock);
    this.#providers = new LoginProviders(options.providers);
    const codeFlow = new CodeFlow({ calls: this.#calls, documents, jwts: this.#jwts, clock });
    this.#logins = new Logins({
      seals,
      callbackRelay: this.callbackRelay,
      providers: this.#providers,
      codeFlow,
      edgeUrl,
      clock,
    });
    this.#limiters = new LimiterTables(clock);
    this.#log = logger === undefined ? null : new LogLimiter(logger, () => clock.monotonic());
    this.#operatorAuths = new Set(
      operatorPolicy?.rules.flatMap((rule) => ('auth' in rule ? (rule.auth.jwt ?? []) : [])),
    );
  }

  /** The operator's, which a policy may name. */
  get loginProviders(): readonly string[] {
    return this.#providers.names;
  }

  get metrics(): PolicyDriverMetrics {
    return {
      passwordChecks: this.#passwords.results,
      providerRequests: this.#calls.results,
      limiterKeys: this.#limiters.keys,
    };
  }

  /**
   * Everything but a body, which whoever reads the request holds. Never rejects: what fails is an answer that lets nobody in.
   * `visitor`: says when it has left.
   */
  perform(
    effect: Exclude<PolicyEffect, { kind: 'hold-body' }>,
    subject: EffectSubject,
    visitor: PolicyVisitor,
  ): PolicyEvent | Promise<PolicyEvent> {
    try {
      if (effect.kind === 'take-token') return this.#limiters.take(effect, subject);
      const { authCache } = visitor;
      return authCache === undefined
        ? this.#found(effect, subject, visitor)
        : this.#remembered(effect, subject, visitor, authCache);
    } catch (error) {
      return failedBy(error);
    }
  }

  #remembered(
    effect: FoundOut,
    subject: EffectSubject,
    visitor: PolicyVisitor,
    authCache: ConnectionAuthCache,
  ): PolicyEvent | Promise<PolicyEvent> {
    const now = this.#clock.now();
    const known = authCache.find(effect, subject, now);
    if (known !== null) {
      if (effect.kind === 'check-password') this.#passwords.results.cached += 1;
      return known;
    }
    const event = this.#found(effect, subject, visitor);
    // What had to be waited for is kept when it is found again.
    if (!(event instanceof Promise)) authCache.keep(effect, subject, event, now);
    return event;
  }

  #found(effect: FoundOut, subject: EffectSubject, visitor: Leaving): PolicyEvent | Promise<PolicyEvent> {
    const event = this.#perform(effect, subject, visitor);
    return event instanceof Promise ? event.catch(failedBy).then((met) => this.#noted(met, subject)) : event;
  }

  /** A route's policy has been replaced or has ended. */
  forget(served: object): void {
    this.#ids.delete(served);
    this.#limiters.forget(served);
  }

  close(): void {
    this.#calls.close();
    this.#limiters.close();
  }

  #perform(effect: FoundOut, subject: EffectSubject, visitor: Leaving): PolicyEvent | Promise<PolicyEvent> {
    switch (effect.kind) {
      case 'open-cookie':
        return this.#logins.openCookie(effect, subject, this.#idOf(subject.served));
      case 'check-password': {
        const { routeKey, address, tenant } = subject;
        const policyId = this.#idOf(subject.served);
        return this.#passwords.perform(effect, { policyId, routeKey, address, tenant }, visitor);
      }
      case 'verify-jwt': {
        const { auth, token } = effect;
        const trust = this.#operatorAuths.has(auth) ? 'operator' : 'tenant';
        const { tenant } = subject;
        return this.#jwts.perform(auth, token, `${this.#idOf(subject.served)} ${this.#idOf(auth)}`, { trust, tenant });
      }
      case 'begin-login':
        return this.#logins.begin(effect, subject);
      case 'finish-login':
        return this.#logins.finish(effect, subject);
    }
  }

  #noted(event: PolicyEvent, { host, tenant }: EffectSubject): PolicyEvent {
    if (event.kind !== 'failed' || event.fault.code !== 'POLICY_PROVIDER_AWAY') return event;
    const { code, internal, cause } = event.fault;
    const reason = internal ?? (cause instanceof Error ? cause.message : 'unknown');
    // By tenant: of a wildcard name visitors make as many hosts as they like.
    this.#log?.log('warn', `${code} ${tenant}`, { code, host, reason }, 'request to a sign-in or key provider failed');
    return event;
  }

  /** Caches name what their entries belong to by a number: what is forgotten is never found again under it. */
  #idOf(owner: object): number {
    const known = this.#ids.get(owner);
    if (known !== undefined) return known;
    this.#lastId += 1;
    this.#ids.set(owner, this.#lastId);
    return this.#lastId;
  }
}

const failedBy = (error: unknown): PolicyEvent => ({ kind: 'failed', fault: Fault.from(error) });
