import { parseRequestHead, type RequestHead } from '@tunnel/core';
import { expect, it } from 'vitest';
import { HttpRouter } from './http-router.ts';
import type { Route } from './registry.ts';

const headFor = (host: string, path = '/'): RequestHead => {
  const head = parseRequestHead(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

it('each request of a connection goes where its own Host says, whatever the one before asked for', () => {
  const routes = new Map(['one', 'two'].map((name) => [name, { name } as unknown as Route]));
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: (endpoint) => (endpoint.kind === 'name' ? routes.get(endpoint.name) : undefined) },
    names: { isHeld: () => false },
    reserved: { isReserved: () => false },
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
  const [one, two] = [routes.get('one'), routes.get('two')];
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
  // It is asked anew each time, also by the same name.
  routes.delete('two');
  expect(routeOf(other, 'two.edge.test')).toBe('none');
});

it('a host whose TLS ends at its service has no requests here: over TLS another connection is asked for', () => {
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: () => ({ protocol: 'tls' }) as Route },
    names: { isHeld: () => false },
    reserved: { isReserved: () => false },
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

it('logins at the providers of the operator come back to the edge itself, at one path of one host', () => {
  const bounced: string[] = [];
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: () => undefined },
    names: { isHeld: () => false },
    reserved: { isReserved: () => false },
    trustedProxies: [],
    redirectPort: () => null,
    takesClients: true,
    bounce: (path) => {
      bounced.push(path);
      return { own: { status: 302, headers: [['location', 'https://shop.edge.test/.tunnel/callback']], body: '' } };
    },
  });
  const connection = router.visitorOf('203.0.113.7', 'https');
  expect(router.route(connection, headFor('edge.edge.test:8443', '/.tunnel/callback?state=1'))).toMatchObject({
    own: { status: 302 },
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

it('a nested name is served by its own tunnel, else by the wildcard over it, which covers one label', () => {
  const routes = new Map(['shop', 'a.shop', '*.shop'].map((name) => [name, { name } as unknown as Route]));
  const held = new Set<string>();
  const reserved = new Set<string>();
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: (endpoint) => (endpoint.kind === 'name' ? routes.get(endpoint.name) : undefined) },
    names: { isHeld: (name) => held.has(name) },
    reserved: { isReserved: (name) => reserved.has(name) },
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
  // Its client is away for a moment: the wildcard does not get its visitors.
  routes.delete('a.shop');
  expect(found('a.shop.edge.test')).toBe('*.shop');
  held.add('a.shop');
  expect(found('a.shop.edge.test')).toBe('TUNNEL_AWAY');
  routes.delete('*.shop');
  expect(found('b.shop.edge.test')).toBe('TUNNEL_NOT_FOUND');
  held.add('*.shop');
  expect(found('b.shop.edge.test')).toBe('TUNNEL_AWAY');
  // A reserved name without a client is somebody's; one that is nobody's, or only held by use, is not found.
  routes.clear();
  expect(found('shop.edge.test')).toBe('TUNNEL_NOT_FOUND');
  reserved.add('shop');
  expect(found('shop.edge.test')).toBe('TUNNEL_AWAY');
});

it("the platform's host is one route more: before names of tunnels, behind the paths of clients", () => {
  const [shop, platform] = [{ name: 'shop' } as unknown as Route, { name: 'platform' } as unknown as Route];
  const given = {
    ...{ domain: 'edge.test', trustedProxies: [], takesClients: true },
    tunnels: { at: () => shop },
    names: { isHeld: () => false },
    reserved: { isReserved: () => false },
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
  expect(covered.route(visitor, headFor('console.example', '/app/'))).toMatchObject({ own: { status: 308 } });
  expect(covered.route(visitor, headFor('other.example'))).not.toHaveProperty('own');
});
