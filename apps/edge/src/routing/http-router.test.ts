import { parseRequestHead, type RequestHead } from '@tunnel/http1';
import { describe, expect, it } from 'vitest';
import { HttpRouter } from './http-router.ts';
import type { Route } from './registry.ts';

const headFor = (host: string, path = '/'): RequestHead => {
  const head = parseRequestHead(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const nobodyAway = {
  names: { isHeld: () => false, isHeldForTls: () => false },
  reserved: { isReserved: () => false, accountOfDomain: () => null },
};

it('every request of a connection is routed by its own Host, independently of earlier requests', () => {
  const routes = new Map(['one', 'two'].map((name) => [name, { name } as unknown as Route]));
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: (endpoint) => (endpoint.kind === 'name' ? routes.get(endpoint.name) : undefined) },
    ...nobodyAway,
    trustedProxies: [],
    redirectPort: () => null,
    takesClients: false,
  });
  const connection = router.visitorOf('::ffff:203.0.113.7', 'http');
  const other = router.visitorOf('203.0.113.8', 'http');
  const routeOf = (from: typeof connection, host: string): unknown => {
    const decision = router.route(from, headFor(host));
    return 'route' in decision ? decision.route : 'none';
  };
  const one = routes.get('one');
  const two = routes.get('two');
  expect(connection).toMatchObject({ address: '203.0.113.7', scheme: 'http', isProxy: false });
  const asked = [
    'one.edge.test',
    'one.edge.test',
    'TWO.edge.test:80',
    'edge.test',
    'one.edge.test.',
    'a.one.edge.test',
  ];
  expect(asked.map((host) => routeOf(connection, host))).toEqual([one, one, two, 'none', one, 'none']);
  expect(routeOf(other, 'two.edge.test')).toBe(two);
  // The tunnel is looked up for every request, even for the same name.
  routes.delete('two');
  expect(routeOf(other, 'two.edge.test')).toBe('none');
});

it('a host of a tls tunnel gets a 421 over https and a 404 over http', () => {
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: () => ({ protocol: 'tls' }) as Route },
    ...nobodyAway,
    trustedProxies: [],
    redirectPort: () => null,
    takesClients: false,
  });
  for (const [scheme, code, status] of [
    ['https', 'HTTP_MISDIRECTED', 421],
    ['http', 'TUNNEL_NOT_FOUND', 404],
  ] as const) {
    const connection = router.visitorOf('203.0.113.7', scheme);
    expect(router.route(connection, headFor('db.edge.test'))).toMatchObject({ fault: { code, status } });
  }
});

it('callbacks of the operator’s providers are handled by the edge, on a single path of a single host', () => {
  const bounced: string[] = [];
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: () => undefined },
    ...nobodyAway,
    trustedProxies: [],
    redirectPort: () => null,
    takesClients: true,
    callbackRelay: (path) => {
      bounced.push(path);
      return {
        response: { status: 302, headers: [['location', 'https://shop.edge.test/.tunnel/callback']], body: '' },
      };
    },
  });
  const connection = router.visitorOf('203.0.113.7', 'https');
  expect(router.route(connection, headFor('edge.edge.test:8443', '/.tunnel/callback?state=1'))).toMatchObject({
    response: { status: 302 },
  });
  expect(bounced).toEqual(['/.tunnel/callback?state=1']);
  for (const [host, path] of [
    ['edge.edge.test', '/'],
    ['shop.edge.test', '/.tunnel/callback?state=1'],
    ['edge.test', '/.tunnel/callback?state=1'],
  ] as const) {
    expect(router.route(connection, headFor(host, path))).toMatchObject({ fault: { code: 'TUNNEL_NOT_FOUND' } });
  }
  expect(bounced).toHaveLength(1);
});

it('a nested name is served by its own tunnel, otherwise by a wildcard covering one label', () => {
  const routes = new Map(['shop', 'a.shop', '*.shop'].map((name) => [name, { name } as unknown as Route]));
  const held = new Set<string>();
  const reserved = new Set<string>();
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: (endpoint) => (endpoint.kind === 'name' ? routes.get(endpoint.name) : undefined) },
    names: { isHeld: ({ name }) => held.has(name), isHeldForTls: () => false },
    reserved: { isReserved: (name) => reserved.has(name), accountOfDomain: () => null },
    trustedProxies: [],
    redirectPort: () => null,
    takesClients: false,
  });
  const found = (host: string): string => {
    const decision = router.route(router.visitorOf('203.0.113.7', 'http'), headFor(host));
    if ('route' in decision) return (decision.route as unknown as { name: string }).name;
    return 'fault' in decision ? decision.fault.code : 'own';
  };
  expect(found('shop.edge.test')).toBe('shop');
  expect(found('A.shop.edge.test:8000')).toBe('a.shop');
  expect(found('b.shop.edge.test.')).toBe('*.shop');
  expect(found('x.b.shop.edge.test')).toBe('TUNNEL_NOT_FOUND');
  expect(found('b.other.edge.test')).toBe('TUNNEL_NOT_FOUND');
  // While the client of a nested name is away, the wildcard does not get its visitors.
  routes.delete('a.shop');
  expect(found('a.shop.edge.test')).toBe('*.shop');
  held.add('a.shop');
  expect(found('a.shop.edge.test')).toBe('TUNNEL_AWAY');
  routes.delete('*.shop');
  expect(found('b.shop.edge.test')).toBe('TUNNEL_NOT_FOUND');
  held.add('*.shop');
  expect(found('b.shop.edge.test')).toBe('TUNNEL_AWAY');
  // A reserved name without a client gets TUNNEL_AWAY. A free name, and a name held only by use, are not found.
  routes.clear();
  expect(found('shop.edge.test')).toBe('TUNNEL_NOT_FOUND');
  reserved.add('shop');
  expect(found('shop.edge.test')).toBe('TUNNEL_AWAY');
});

describe('a custom domain', () => {
  const given = () => {
    const routes = new Map<string, Route>();
    const held = new Map<string, 'http' | 'tls'>();
    const accounts = new Map<string, string>();
    let lookups = 0;
    const router = new HttpRouter({
      domain: 'edge.test',
      tunnels: {
        at: (endpoint) => {
          lookups += 1;
          return 'name' in endpoint ? routes.get(`${endpoint.kind} ${endpoint.name}`) : undefined;
        },
      },
      names: {
        isHeld: ({ kind, name }) => held.has(`${kind} ${name}`),
        isHeldForTls: ({ kind, name }) => held.get(`${kind} ${name}`) === 'tls',
      },
      reserved: { isReserved: () => false, accountOfDomain: (domain) => accounts.get(domain) ?? null },
      trustedProxies: [],
      redirectPort: (host) => (host.startsWith('secure.') ? 443 : null),
      takesClients: true,
    });
    const serve = (key: string, protocol = 'http'): void => void routes.set(key, { label: key, protocol } as Route);
    const found = (host: string, scheme: 'http' | 'https' = 'http', path = '/'): string => {
      const decision = router.route(router.visitorOf('203.0.113.7', scheme), headFor(host, path));
      if ('route' in decision) return decision.route.label;
      if ('to' in decision) return decision.to;
      return 'fault' in decision ? decision.fault.code : `to ${decision.response.headers[0]?.[1]}`;
    };
    return { routes, held, accounts, serve, found, lookups: () => lookups };
  };

  it('is found by Host in any case, with port and trailing dot; an exact domain comes before a wildcard', () => {
    const { serve, found, accounts } = given();
    serve('domain shop.example.org');
    serve('domain *.example.org');
    for (const host of ['shop.example.org', 'SHOP.Example.org', 'shop.example.org:8000', 'Shop.example.org.:80']) {
      expect(found(host)).toBe('domain shop.example.org');
    }
    expect(found('blog.example.org')).toBe('domain *.example.org');
    for (const host of ['example.org', 'a.blog.example.org', 'shop.example.com', '203.0.113.1']) {
      expect(found(host)).toBe('TUNNEL_NOT_FOUND');
    }
    // The host may belong to another account than the wildcard, so the wildcard must not get its visitors.
    accounts.set('blog.example.org', 'alice');
    expect(found('blog.example.org')).toBe('TUNNEL_AWAY');
  });

  it('is separate from the same text as a subdomain', () => {
    const { serve, found } = given();
    serve('name a.shop');
    expect([found('a.shop.edge.test'), found('a.shop')]).toEqual(['name a.shop', 'TUNNEL_NOT_FOUND']);
    serve('domain a.shop');
    expect([found('a.shop.edge.test'), found('a.shop')]).toEqual(['name a.shop', 'domain a.shop']);
    expect(found('abcdefghijabcdefghij.edge.test')).toBe('TUNNEL_NOT_FOUND');
  });

  it('without a client gets TUNNEL_AWAY if verified or held, as do hosts covered by its wildcard', () => {
    const { accounts, held, found } = given();
    expect(found('shop.example.org')).toBe('TUNNEL_NOT_FOUND');
    accounts.set('shop.example.org', 'alice').set('*.example.net', 'alice');
    held.set('domain db.example.com', 'http');
    for (const host of ['shop.example.org', 'any.example.net', 'db.example.com'])
      expect(found(host)).toBe('TUNNEL_AWAY');
    expect(found('example.net')).toBe('TUNNEL_NOT_FOUND');
  });

  it('of a tls tunnel serves no HTTP requests, even while its client is away', () => {
    const { serve, held, routes, found } = given();
    for (const key of ['domain db.example.org', 'name db']) serve(key, 'tls');
    const said = () => ['db.example.org', 'db.edge.test'].map((host) => [found(host), found(host, 'https')]);
    const misdirected = ['TUNNEL_NOT_FOUND', 'HTTP_MISDIRECTED'];
    expect(said()).toEqual([misdirected, misdirected]);
    for (const key of ['domain db.example.org', 'name db']) {
      routes.delete(key);
      held.set(key, 'tls');
    }
    expect(said()).toEqual([misdirected, misdirected]);
  });

  it('redirects http to https only if a certificate covers the domain and the edge serves it', () => {
    const { serve, accounts, found } = given();
    expect(found('secure.example.org')).toBe('TUNNEL_NOT_FOUND');
    accounts.set('secure.example.org', 'alice');
    expect(found('secure.example.org', 'http', '/a')).toBe('to https://secure.example.org/a');
    expect(found('secure.example.org', 'https')).toBe('TUNNEL_AWAY');
    serve('domain *.example.net');
    expect(found('secure.example.net')).toBe('to https://secure.example.net/');
  });

  it('accepts no clients on /_control, unlike the edge’s own domain', () => {
    const { serve, found } = given();
    serve('domain shop.example.org');
    expect(found('shop.example.org', 'http', '/_control')).toBe('domain shop.example.org');
    expect(found('edge.test', 'http', '/_control')).toBe('control');
  });

  it('adds no lookup for subdomains of the edge’s domain', () => {
    const { serve, found, lookups } = given();
    serve('name web');
    serve('domain web.edge.test');
    expect([found('web.edge.test'), lookups()]).toEqual(['name web', 1]);
  });
});

it('the platform’s host comes before names of tunnels and after the paths of clients', () => {
  const shop = { name: 'shop' } as unknown as Route;
  const platform = { name: 'platform' } as unknown as Route;
  const given = {
    domain: 'edge.test',
    trustedProxies: [],
    takesClients: true,
    tunnels: { at: ({ kind }: { kind: string }) => (kind === 'name' ? shop : undefined) },
    ...nobodyAway,
    platform: { isAt: (host: string) => host === 'console.edge.test', route: platform as never },
  };
  const clear = new HttpRouter({ ...given, redirectPort: () => null });
  const visitor = clear.visitorOf('203.0.113.7', 'http');
  expect(clear.route(visitor, headFor('console.edge.test'))).toMatchObject({ route: platform });
  expect(clear.route(visitor, headFor('other.edge.test'))).toMatchObject({ route: shop });
  expect(clear.route(visitor, headFor('console.edge.test', '/_carrier?token=1'))).toEqual({ to: 'control' });
  const off = new HttpRouter({ ...given, takesClients: false, redirectPort: () => null });
  expect(off.route(visitor, headFor('console.edge.test', '/_control'))).toMatchObject({ fault: { status: 404 } });
  const covered = new HttpRouter({
    ...given,
    platform: { isAt: (host) => host === 'console.example', route: platform as never },
    redirectPort: () => 443,
  });
  expect(covered.route(visitor, headFor('console.example', '/app/'))).toMatchObject({ response: { status: 308 } });
  expect(covered.route(visitor, headFor('other.example'))).not.toHaveProperty('response');
});
