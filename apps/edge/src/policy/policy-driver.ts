// Performs the effects that policy rules request: checks passwords and tokens, opens cookies, runs logins, counts requests. Contains no
// rules itself. A result that is returned synchronously costs the request no turn of the event loop.

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
  /** Logs providers that fail, with the reason. The tunnels' visitors only see that the provider failed. */
  readonly logger?: Logger | undefined;
  /** Login secrets. The first secret seals; every secret can open. */
  readonly loginSecrets: readonly Secret[];
  /** The operator's login providers (`[[policy.login]]`), by name. */
  readonly providers: ReadonlyMap<string, Provider>;
  /** The operator's rules. Token issuers in these rules are trusted like the operator's login providers. */
  readonly operatorPolicy: Policy | null;
  /** True if providers of tenants can be at private addresses and use plain http. */
  readonly allowPrivate: boolean;
  /** Returns the public URL of the edge, such as `https://edge.example.com:8443`. */
  readonly edgeUrl: () => string;
  readonly lookup?: NameLookup | undefined;
  /** Trusted CA certificates, instead of the public authorities. */
  readonly ca?: string | undefined;
  /** Replaces the scrypt check in tests that count calls. */
  readonly checkPassword?: PasswordChecksOptions['check'];
}

/** The request and the route for which an effect is performed. */
export interface EffectSubject extends LoginSubject {
  /**
   * Object that stands for the route with a revision of its policy; a new revision is a new object. Caches and limiters are stored under
   * the object, and end with it.
   */
  readonly served: object;
  /** Unique key of the route. A change of the policy does not change the key. */
  readonly routeKey: string;
}

/** The visitor that waits for the result of an effect. */
export interface PolicyVisitor extends Leaving {
  /** Cached authentication result of the visitor's connection. If absent, credentials are looked up for every request. */
  readonly authCache?: ConnectionAuthCache;
}

/** Effects that look up a fact, as opposed to effects that hold a body or count a request. */
type FoundOut = Exclude<PolicyEffect, { kind: 'hold-body' | 'take-token' }>;

export interface PolicyDriverMetrics {
  readonly passwordChecks: Readonly<Record<PasswordResult, number>>;
  readonly providerRequests: Readonly<Record<ProviderResult, number>>;
  readonly limiterKeys: number;
}

export class PolicyDriver {
  /** Answers the login callback at `edge.<domain>/.tunnel/callback`. */
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

  /** Names of the operator's login providers, which policies can refer to. */
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
   * Performs an effect. Holding a body is excluded, because only the reader of the request can do that. Never rejects: an error becomes a
   * result that rejects the visitor. `visitor` reports when the visitor has disconnected.
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
    // An awaited result is not stored here; the next request finds the result in a shared cache and stores it then.
    if (!(event instanceof Promise)) authCache.keep(effect, subject, event, now);
    return event;
  }

  #found(effect: FoundOut, subject: EffectSubject, visitor: Leaving): PolicyEvent | Promise<PolicyEvent> {
    const event = this.#perform(effect, subject, visitor);
    return event instanceof Promise ? event.catch(failedBy).then((met) => this.#noted(met, subject)) : event;
  }

  /** Deletes the limiters and ids of a route's policy that was replaced or has ended. */
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
    // Throttle the log by tenant, not by host: visitors of a wildcard name can invent any number of hosts.
    this.#log?.log('warn', `${code} ${tenant}`, { code, host, reason }, 'request to a sign-in or key provider failed');
    return event;
  }

  /**
   * Returns a number that identifies the object in cache keys. A forgotten object gets a new number, so that its old cache entries are
   * never found again.
   */
  #idOf(owner: object): number {
    const known = this.#ids.get(owner);
    if (known !== undefined) return known;
    this.#lastId += 1;
    this.#ids.set(owner, this.#lastId);
    return this.#lastId;
  }
}

const failedBy = (error: unknown): PolicyEvent => ({ kind: 'failed', fault: Fault.from(error) });
