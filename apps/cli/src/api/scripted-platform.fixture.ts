// A platform for tests of the commands: a real HTTP server that keeps an account in memory and responds as the API contract requires.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { run } from '../all-commands.ts';
import { makeTestIo, piping } from '../io/io.fixture.ts';

export const EMAIL = 'ann@example.com';
export const PASSWORD = 'correct horse battery';

interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

type Refusal = { readonly status: number; readonly code: string; readonly error: string };

/** A scripted answer for the next call to a path with this prefix, used once. */
interface Trap {
  readonly path: string;
  readonly answer: (response: ServerResponse) => void;
}

const refusals = {
  wrong: { status: 401, code: 'LOGIN_WRONG', error: 'incorrect email or password' },
  access: { status: 401, code: 'ACCESS_TOKEN_INVALID', error: 'invalid or expired access token' },
  refresh: { status: 401, code: 'REFRESH_INVALID', error: 'the session has ended' },
  suspended: { status: 403, code: 'ACCOUNT_SUSPENDED', error: 'the account is suspended' },
  key: { status: 404, code: 'KEY_UNKNOWN', error: 'no such key' },
  domain: { status: 404, code: 'DOMAIN_UNKNOWN', error: 'no such domain' },
  reservation: { status: 404, code: 'RESERVATION_UNKNOWN', error: 'no such reservation' },
  tunnel: { status: 404, code: 'TUNNEL_UNKNOWN', error: 'no such tunnel' },
  capture: { status: 404, code: 'CAPTURE_UNKNOWN', error: 'no such captured request for this tunnel' },
} satisfies Record<string, Refusal>;

export class ScriptedPlatform {
  readonly asks: Ask[] = [];
  /** Refresh tokens that are still valid. A refresh invalidates its token at once, without a grace period. */
  readonly refreshTokens = new Set<string>();
  readonly accessTokens = new Set<string>();
  keys: Record<string, unknown>[] = [];
  chart: Record<string, unknown>[] = [];
  tunnels: Record<string, unknown>[] = [];
  /** Captured requests by tunnel, newest first. */
  readonly captures = new Map<string, Record<string, unknown>[]>();
  regions: Record<string, unknown>[] = [];
  reservations: Record<string, unknown>[] = [];
  domains: Record<string, unknown>[] = [];
  /** Called on each check of a domain, whether the user or the platform started the check. */
  onDomainLook: (domain: Record<string, unknown>) => void = () => {};
  billing: Record<string, unknown> = { ...BILLING };
  usedCents = 1240;
  suspended = false;
  /** Called while an API key is created. */
  onCreate: () => void = () => {};
  url = '';
  #made = 0;
  #server: Server | null = null;
  readonly #traps: Trap[] = [];

  static async start(): Promise<ScriptedPlatform> {
    const platform = new ScriptedPlatform();
    const server = createServer((request, response) => void platform.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    platform.#server = server;
    platform.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return platform;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server?.close(() => resolve());
      this.#server?.closeAllConnections();
    });
  }

  trap(path: string, status: number, body: string, headers: Record<string, string> = {}): void {
    this.#traps.push({ path, answer: (response) => response.writeHead(status, headers).end(body) });
  }

  paths(): string[] {
    return this.asks.map(({ method, path }) => `${method} ${path}`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const part of request as AsyncIterable<Buffer>) body += part.toString('utf8');
    const { method = '', url: path = '', headers } = request;
    const ask = { method, path, body, headers };
    this.asks.push(ask);
    const trap = this.#traps.findIndex((one) => path.startsWith(one.path));
    if (trap >= 0) return this.#traps.splice(trap, 1)[0]?.answer(response);
    return path.startsWith('/auth/') && path !== '/auth/me' ? this.#auth(ask, response) : this.#account(ask, response);
  }

  #auth({ path, body, headers }: Ask, response: ServerResponse): void {
    const shown = /refresh_token=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? '';
    if (path === '/auth/logout') {
      this.refreshTokens.delete(shown);
      response.writeHead(204, { 'set-cookie': 'refresh_token=; Max-Age=0; Path=/auth' }).end();
      return;
    }
    if (path === '/auth/refresh') {
      if (this.suspended) return refuse(response, refusals.suspended);
      if (!this.refreshTokens.delete(shown)) return refuse(response, refusals.refresh);
      return this.#welcome(response, {});
    }
    const { email, password } = JSON.parse(body) as Record<string, string>;
    if (email !== EMAIL || password !== PASSWORD) return refuse(response, refusals.wrong);
    if (this.suspended) return refuse(response, refusals.suspended);
    this.#welcome(response, { user: USER });
  }

  #welcome(response: ServerResponse, more: object): void {
    this.#made += 1;
    const tokens = { access: `access-${this.#made}`, refresh: `refresh-${this.#made}` };
    this.accessTokens.add(tokens.access);
    this.refreshTokens.add(tokens.refresh);
    const cookie = `refresh_token=${tokens.refresh}; Max-Age=2592000; Path=/auth; HttpOnly; SameSite=Lax`;
    send(response, 200, { access_token: tokens.access, ...more }, { 'set-cookie': cookie });
  }

  #account({ method, path, body, headers }: Ask, response: ServerResponse): void {
    const access = (headers.authorization ?? '').replace('Bearer ', '');
    if (!this.accessTokens.has(access)) return refuse(response, refusals.access);
    if (this.suspended) return refuse(response, refusals.suspended);
    if (path === '/auth/me') return send(response, 200, USER);
    if (path.startsWith('/domains')) return this.#ownDomains({ method, path, body }, response);
    if (path.startsWith('/reservations')) return this.#reservations({ method, path, body }, response);
    if (path.startsWith('/billing')) return this.#billing({ method, path, body }, response);
    const captured = /^\/usage\/tunnels\/([^/]+)\/requests(?:\/([^/]+)\/replay)?/.exec(path);
    if (captured !== null) return this.#requests(captured[1] ?? '', captured[2], path, response);
    if (method === 'DELETE' && path.startsWith('/tunnels/')) return this.#closeTunnel(path, response);
    if (method === 'DELETE') {
      const left = this.keys.filter(({ id }) => path !== `/keys/${String(id)}`);
      if (left.length === this.keys.length) return refuse(response, refusals.key);
      this.keys = left;
      response.writeHead(204).end();
    } else if (method === 'POST') {
      this.onCreate();
      const { label } = JSON.parse(body) as { label: string };
      const token_hash = createHash('sha256').update('tnl_new').digest('hex');
      this.keys.unshift({
        ...KEY,
        id: 'key-new',
        label,
        token_hash,
        last_used_at: null,
        tunnel_count: 0,
        active_tunnels: 0,
      });
      send(response, 201, { id: 'key-new', token: 'tnl_new' });
    } else if (path === '/keys') send(response, 200, this.keys);
    else if (path === '/usage/regions') send(response, 200, this.regions);
    else if (path === '/usage') send(response, 200, SUMMARY);
    else if (path.startsWith('/usage/chart')) send(response, 200, this.chart);
    else send(response, 200, pageOf(this.tunnels, path));
  }

  #closeTunnel(path: string, response: ServerResponse): void {
    const left = this.tunnels.filter(({ tunnel_id: id }) => path !== `/tunnels/${String(id)}`);
    if (left.length === this.tunnels.length) return refuse(response, refusals.tunnel);
    this.tunnels = left;
    response.writeHead(204).end();
  }

  #ownDomains({ method, path, body }: Omit<Ask, 'headers'>, response: ServerResponse): void {
    if (path === '/domains' && method === 'GET') return send(response, 200, this.domains);
    if (path === '/domains') {
      const { name, certificate } = JSON.parse(body) as { name: string; certificate?: boolean };
      const known = this.domains.find((domain) => domain['name'] === name);
      if (known !== undefined) return send(response, 200, known);
      const records = [{ ...DOMAIN.records[0], name }];
      const made = { ...DOMAIN, name, records, ...(certificate === false ? { certificate: null } : {}) };
      this.domains.push(made);
      return send(response, 201, made);
    }
    const [, id = '', action] = /^\/domains\/([^/]+)(\/check)?$/.exec(path) ?? [];
    const found = this.domains.find((domain) => domain['id'] === id);
    if (found === undefined) return refuse(response, refusals.domain);
    if (method === 'DELETE') {
      this.domains = this.domains.filter((domain) => domain !== found);
      response.writeHead(204).end();
      return;
    }
    this.onDomainLook(found);
    send(response, action === undefined || method === 'POST' ? 200 : 404, found);
  }

  /**
   * Serves reservations. A released reservation stays listed during its grace period, except a reservation labeled `gone`, which
   * disappears at once.
   */
  #reservations({ method, path, body }: Omit<Ask, 'headers'>, response: ServerResponse): void {
    if (method === 'GET') return send(response, 200, this.reservations);
    if (method === 'POST') {
      const made = { ...RESERVATION, id: 'res-new', label: '20007', ...(JSON.parse(body) as object) };
      this.reservations.push(made);
      return send(response, 201, made);
    }
    const at = this.reservations.findIndex(({ id }) => path === `/reservations/${String(id)}`);
    const found = this.reservations[at];
    if (found === undefined) return refuse(response, refusals.reservation);
    const expires_at = found['active_tunnels'] === 0 ? '2030-01-08T00:00:00.000Z' : null;
    const released = { ...found, state: 'released', expires_at };
    this.reservations.splice(at, 1, ...(found['label'] === 'gone' ? [] : [released]));
    response.writeHead(204).end();
  }

  #requests(tunnelId: string, requestId: string | undefined, path: string, response: ServerResponse): void {
    const requests = this.captures.get(tunnelId) ?? [];
    if (requestId === undefined) {
      return send(response, 200, capturesPage(tunnelId, requests, path));
    }
    const found = requests.find(({ id }) => id === requestId);
    if (found === undefined) return refuse(response, refusals.capture);
    send(response, 200, { ...found, id: 'req_new', replay_of: requestId });
  }

  #billing({ method, path, body }: Omit<Ask, 'headers'>, response: ServerResponse): void {
    if (path === '/billing/usage') return send(response, 200, { ...BILLING_USAGE, usage_cents: this.usedCents });
    if (method === 'GET') return send(response, 200, this.billing);
    if (method === 'POST') return send(response, 200, { url: 'https://billing.example/p/1' });
    const cap = JSON.parse(body) as { spend_cap_cents: number | null };
    this.billing['spend_cap_cents'] = cap.spend_cap_cents;
    return send(response, 200, cap);
  }
}

const send = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};

/** A page of captured requests. The cursor is the number of requests on the previous pages. */
const capturesPage = (tunnelId: string, all: readonly unknown[], path: string): object => {
  const query = new URL(path, 'http://platform').searchParams;
  const from = Number(query.get('cursor') ?? 0);
  const to = from + Number(query.get('limit'));
  const hasMore = to < all.length;
  const next_cursor = hasMore ? String(to) : null;
  return { tunnel_id: tunnelId, requests: all.slice(from, to), truncated: hasMore, next_cursor };
};

const pageOf = (all: readonly unknown[], path: string): readonly unknown[] => {
  const query = new URL(path, 'http://platform').searchParams;
  const offset = Number(query.get('offset') ?? 0);
  return all.slice(offset, offset + Number(query.get('limit') ?? 20));
};

const refuse = (response: ServerResponse, { status, code, error }: Refusal): void =>
  send(response, status, { error, code, request_id: 'req-1' });

const USER = {
  id: '5f0c1a52-8f3e-4c7b-9d2a-1b7e4f6a9c03',
  email: EMAIL,
  display_name: null,
  email_verified: true,
  status: 'active',
  auth_method: 'password',
  created_at: '2030-01-01T00:00:00.000Z',
};

export const KEY = {
  id: 'key-1',
  label: 'laptop',
  token_hash: '9f86d081',
  created_at: '2030-01-01T00:00:00.000Z',
  last_used_at: '2030-01-02T00:00:00.000Z',
  scope: null,
  tier: 'free',
  tunnel_limit: 3,
  status: 'active',
  unlimited: false,
  tunnel_count: 7,
  active_tunnels: 0,
};

export const RESERVATION = {
  id: 'res-1',
  kind: 'subdomain',
  label: 'shop',
  region_id: null,
  state: 'reserved',
  public_address: 'http://shop.localhost:8000',
  active_tunnels: 0,
  created_at: '2030-01-01T00:00:00.000Z',
  last_used_at: null,
  expires_at: null,
};

export const DOMAIN = {
  id: 'dom-1',
  name: 'shop.example.com',
  wildcard: false,
  state: 'pending',
  token: 'k3v7q2m5x4n6p7r2t3wa',
  cname_target: 'k3v7q2m5x4n6p7r2t3wa.tunnels.example.net',
  records: [
    {
      type: 'CNAME',
      name: 'shop.example.com',
      value: 'k3v7q2m5x4n6p7r2t3wa.tunnels.example.net',
      purpose: 'proof',
      found: false,
    },
  ],
  certificate: { state: 'none', issuer: null, not_before: null, not_after: null, renew_at: null, last_error: null },
  active_tunnels: 0,
  created_at: '2030-01-01T00:00:00.000Z',
  verified_at: null,
  checked_at: null,
  last_error: null,
};

const SUMMARY = {
  active_tunnels: 2,
  total_tunnels_30d: 17,
  total_requests_30d: 1204,
  total_bytes_30d: 48_201_733,
  plan: 'free',
  tunnel_limit: 3,
  reserved_limit: 3,
  domain_limit: 3,
};

const BILLING_USAGE = {
  month: '2030-01',
  metered_bytes: 124_000_000_000,
  price_cents_per_gb: 10,
  monthly_minimum_cents: 300,
};

export const BILLING = {
  billing_model: 'payg',
  plan_name: 'payg',
  estimated_mtd_cents: 1240,
  spend_cap_cents: 2000,
  subscription_status: 'active',
  current_period_end: '2030-02-01T00:00:00.000Z',
  payment_customer_id: 'cus_1',
  has_payment_method: true,
  allow_custom_subdomains: true,
  monthly_minimum_cents: 300,
};

export interface LoggedIn {
  readonly home: TemporaryDirectory;
  readonly platform: ScriptedPlatform;
  close(): Promise<void>;
}

/** Creates a home folder with a login at a scripted platform. */
export const logIn = async (): Promise<LoggedIn> => {
  const home = await temporaryDirectory();
  const platform = await ScriptedPlatform.start();
  const args = ['login', '--platform', platform.url, '--email', EMAIL, '--password-stdin', '--no-key'];
  await run(args, makeTestIo({ home: home.path, stdin: piping(PASSWORD) }));
  platform.asks.length = 0;
  const close = async (): Promise<void> => {
    await platform.stop();
    await home.close();
  };
  return { home, platform, close };
};
