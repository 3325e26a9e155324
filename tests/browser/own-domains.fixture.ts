// Custom domains in every state in the form of API responses. Real domains would need days, a certificate authority and a second account
// for most states.
import type { DomainCertificate, DomainRecord, NewDomain, OwnDomainView, UsageRegion } from '@tunnel/contract';
import type { BrowserContext, Route } from 'playwright-core';

const DAY_MS = 24 * 60 * 60 * 1000;

const TOKEN = 'k3v7q2m5x4n6p7r2t3wa';
const EDGE = 'tunnels.example.net';

const from = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

export const record = (some: Partial<DomainRecord> = {}): DomainRecord => ({
  type: 'CNAME',
  name: 'shop.example.com',
  value: `${TOKEN}.${EDGE}`,
  purpose: 'proof',
  found: false,
  ...some,
});

export const certificate = (some: Partial<DomainCertificate> = {}): DomainCertificate => ({
  state: 'valid',
  issuer: "Let's Encrypt R11",
  not_before: from(-20),
  not_after: from(70),
  renew_at: from(40),
  last_error: null,
  ...some,
});

export const NO_CERTIFICATE_YET: DomainCertificate = {
  state: 'none',
  issuer: null,
  not_before: null,
  not_after: null,
  renew_at: null,
  last_error: null,
};

export const ownDomain = (name: string, some: Partial<OwnDomainView> = {}): OwnDomainView => ({
  id: name.replaceAll(/[^a-z0-9]+/g, '-'),
  name,
  wildcard: name.startsWith('*'),
  state: 'verified',
  token: TOKEN,
  cname_target: `${TOKEN}.${EDGE}`,
  records: [record({ name, found: some.state === undefined })],
  certificate: certificate(),
  active_tunnels: 0,
  created_at: from(-20),
  verified_at: from(-20),
  checked_at: new Date(Date.now() - 40_000).toISOString(),
  last_error: null,
  ...some,
});

/** An apex domain that needs an A record and a TXT record, of which only the TXT record has been found. */
export const pendingDomain = (name = 'example.org'): OwnDomainView =>
  ownDomain(name, {
    state: 'pending',
    verified_at: null,
    certificate: NO_CERTIFICATE_YET,
    last_error: null,
    records: [
      record({ type: 'A', name, value: '203.0.113.7', purpose: 'route' }),
      record({ type: 'AAAA', name, value: '2001:db8:85a3::7', purpose: 'route' }),
      record({ type: 'TXT', name: `_tunnel.${name}`, value: `tunnel-verify=${TOKEN}`, found: true }),
    ],
  });

export const domainsInAllStates = (): OwnDomainView[] => [
  ownDomain('shop.example.com', { active_tunnels: 1, records: [record({ found: true })] }),
  pendingDomain(),
  ownDomain('*.eu.example.com', {
    records: [
      record({ name: '*.eu.example.com', found: true }),
      record({
        name: '_acme-challenge.eu.example.com',
        value: `${TOKEN}._acme-challenge.${EDGE}`,
        purpose: 'challenge',
      }),
    ],
    certificate: {
      ...NO_CERTIFICATE_YET,
      state: 'failing',
      last_error: 'the certificate authority did not find the record _acme-challenge.eu.example.com',
    },
  }),
  ownDomain('blog.example.net', { certificate: null, records: [record({ name: 'blog.example.net', found: true })] }),
  ownDomain('old.example.com', { state: 'lapsed', last_error: 'no record with the token was found' }),
  ownDomain('typo.example.com', {
    state: 'failed',
    verified_at: null,
    certificate: NO_CERTIFICATE_YET,
    last_error: 'no record with the token was found',
  }),
];

type Refusal = { readonly status: number; readonly code: string; readonly error: string; readonly after?: number };

/** Answers `/domains` requests inside the browser. All other requests reach the platform. */
export class DomainsApi {
  list: OwnDomainView[];
  /** Error response to the next request that is not a GET. */
  refusal: Refusal | null = null;
  reads = 0;

  private constructor(list: OwnDomainView[]) {
    this.list = list;
  }

  static async in(context: BrowserContext, list: OwnDomainView[] = domainsInAllStates()): Promise<DomainsApi> {
    const api = new DomainsApi(list);
    await pretendPublic(context);
    await context.route(
      ({ pathname }) => /^\/domains(\/|$)/.test(pathname),
      (route) => api.#answer(route),
    );
    return api;
  }

  change(id: string, some: Partial<OwnDomainView>): void {
    this.list = this.list.map((one) => (one.id === id ? { ...one, ...some } : one));
  }

  #answer(route: Route): Promise<void> {
    const request = route.request();
    const [, , id, verb] = new URL(request.url()).pathname.split('/');
    const one = this.list.find((domain) => domain.id === id);
    if (request.method() === 'GET') {
      this.reads += 1;
      if (id === undefined) return route.fulfill({ json: this.list });
      return one === undefined ? refuse(route, UNKNOWN) : route.fulfill({ json: one });
    }
    if (this.refusal !== null) {
      const { refusal } = this;
      this.refusal = null;
      return refuse(route, refusal);
    }
    if (id === undefined) return this.#add(route, request.postDataJSON() as NewDomain);
    if (one === undefined) return refuse(route, UNKNOWN);
    if (verb === 'check') return route.fulfill({ json: one });
    this.list = this.list.filter((domain) => domain !== one);
    return route.fulfill({ status: 204 });
  }

  #add(route: Route, { name, certificate: wanted = true }: NewDomain): Promise<void> {
    const added = ownDomain(name, {
      state: 'pending',
      verified_at: null,
      checked_at: null,
      certificate: wanted ? NO_CERTIFICATE_YET : null,
    });
    this.list = [...this.list, added];
    return route.fulfill({ status: 201, json: added });
  }
}

/** Makes the server's regions look public, because custom domains are offered only on public servers. */
export const pretendPublic = (context: BrowserContext): Promise<unknown> =>
  context.route('**/usage/regions', async (route) => {
    const response = await route.fetch();
    const regions = (await response.json()) as UsageRegion[];
    await route.fulfill({ response, json: regions.map((one) => ({ ...one, http_url: `https://${EDGE}` })) });
  });

const UNKNOWN: Refusal = { status: 404, code: 'DOMAIN_UNKNOWN', error: 'no such domain' };

const refuse = (route: Route, { status, code, error, after }: Refusal): Promise<void> =>
  route.fulfill({
    status,
    json: { error, code, request_id: 'r' },
    headers: after === undefined ? {} : { 'retry-after': String(after) },
  });
