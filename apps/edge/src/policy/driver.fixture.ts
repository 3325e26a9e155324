// A policy driver with its providers, and browsers that sign in through the driver. Shared by the tests of logins.
import type { LoginProvider, Policy, PolicyEvent } from '@tunnel/policy';
import { type Clock, Secret } from '@tunnel/runtime';
import type { Provider } from './login-providers.ts';
import { type EffectSubject, PolicyDriver, type PolicyDriverOptions } from './policy-driver.ts';

const SECRET = new Secret('k'.repeat(43));
export const EDGE_URL = 'https://edge.example.com:8443';
export const SHOP_URL = 'https://shop.example.com:8443';

export const driverOf = (clock: Clock, more: Partial<PolicyDriverOptions> = {}): PolicyDriver =>
  new PolicyDriver({
    clock,
    loginSecrets: [SECRET],
    providers: new Map(),
    operatorPolicy: null,
    allowPrivate: true,
    edgeUrl: () => EDGE_URL,
    ...more,
  });

interface ProviderFacts {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export const loginAt = ({ issuer, clientId, clientSecret }: ProviderFacts): LoginProvider => ({
  issuer,
  client_id: clientId,
  client_secret: clientSecret,
  scopes: ['openid', 'email'],
  session_secs: 3600,
  trusted_origins: [],
});

export const operatorsAt = ({ issuer, clientId, clientSecret }: ProviderFacts): Map<string, Provider> =>
  new Map([
    [
      'company',
      {
        ref: { trust: 'operator', issuer },
        clientId,
        clientSecret: new Secret(clientSecret),
        scopes: ['openid', 'email', 'profile'],
      },
    ],
  ]);

export const policyWith = (login: LoginProvider, claims?: Record<string, string[]>): Policy => ({
  login,
  rules: [{ auth: { token_header: 'x-tunnel-token', login: claims === undefined ? { anyone: true } : { claims } } }],
});

const forever = new AbortController();
const COOKIE_NAME = /^(?:__Host-)?tunnel_login(?:_([0-9a-f]{8}))?$/;

/** A browser at one tunnel: keeps cookies, but follows no redirects. */
export class Browser {
  readonly pending = new Map<string, string>();
  readonly logins: string[] = [];
  /** Every Set-Cookie header received so far. */
  readonly setCookies: string[] = [];
  readonly subject: EffectSubject;
  readonly #driver: PolicyDriver;
  readonly #login: LoginProvider;

  constructor(driver: PolicyDriver, login: LoginProvider, subject: Partial<EffectSubject> = {}) {
    this.#driver = driver;
    this.#login = login;
    this.subject = {
      served: {},
      policy: policyWith(login),
      routeKey: 'shop',
      owner: 'account 1',
      tenant: 'account 1',
      host: 'shop.example.com',
      scheme: 'https',
      publicUrl: SHOP_URL,
      address: '192.0.2.1',
      ...subject,
    };
  }

  async begin(returnPath = '/deep?x=1'): Promise<PolicyEvent> {
    const effect = { kind: 'begin-login', login: this.#login, returnPath } as const;
    return this.#keep(await this.#driver.perform(effect, this.subject, forever));
  }

  /** Begins a login and returns the URL of the redirect to the provider. */
  async locationOf(returnPath?: string): Promise<string> {
    const event = await this.begin(returnPath);
    if (event.kind !== 'login-begun') throw new Error(`not begun: ${JSON.stringify(event)}`);
    return event.location;
  }

  async finish(query: string, pending: ReadonlyMap<string, string> = this.pending): Promise<PolicyEvent> {
    const effect = { kind: 'finish-login', login: this.#login, query, pending: new Map(pending) } as const;
    return this.#keep(await this.#driver.perform(effect, this.subject, forever));
  }

  /** Opens the session in the browser’s cookies, or in the given cookies. */
  async session(sealed: readonly string[] = this.logins, subject: Partial<EffectSubject> = {}): Promise<unknown> {
    const effect = { kind: 'open-cookie', login: this.#login, sealed } as const;
    const event = await this.#driver.perform(effect, { ...this.subject, ...subject }, forever);
    return event.kind === 'cookie-opened' ? event.session : event;
  }

  #keep(event: PolicyEvent): PolicyEvent {
    if (event.kind !== 'login-begun' && event.kind !== 'login-finished') return event;
    for (const line of event.setCookies) {
      this.setCookies.push(line);
      const [pair = ''] = line.split(';', 1);
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      const [, id] = COOKIE_NAME.exec(name) ?? [];
      if (id === undefined) this.logins.push(value);
      else if (value === '') this.pending.delete(id);
      else this.pending.set(id, value);
    }
    return event;
  }
}
