import { parseRequestHead, type RequestHead } from '@tunnel/core';
import { expect, it } from 'vitest';
import { HttpRouter } from './http-router.ts';
import type { Route } from './registry.ts';

const headFor = (host: string): RequestHead => {
  const head = parseRequestHead(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
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
