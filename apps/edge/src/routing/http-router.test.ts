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

it('logins at the providers of the operator come back to the edge itself, at one path of one host', () => {
  const bounced: string[] = [];
  const router = new HttpRouter({
    domain: 'edge.test',
    tunnels: { at: () => undefined },
    names: { isHeld: () => false },
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
