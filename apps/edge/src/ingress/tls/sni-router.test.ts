// The five destinations of a connection, chosen by its ClientHello.
import { expect, it } from 'vitest';
import type { Route } from '../../routing/registry.ts';
import { emptyStore } from '../http/https.fixture.ts';
import { makeCertificate } from './made-certificate.fixture.ts';
import { SniRouter } from './sni-router.ts';

const route = { kind: 'the tunnel' } as unknown as Route;
const certificates = emptyStore();
certificates.set(['shop.test', 'secret.test'], makeCertificate('shop.test'));
const passthrough = { routeFor: (host: string) => (host === 'secret.test' ? route : undefined) };
const challenges = { isKnown: (name: string) => name === 'shop.test' };
const sniRouter = new SniRouter({ certificates, passthrough, challenges, takesClients: true });

const destinationOf = (sni: string | null, ...alpn: string[]): string => sniRouter.destinationOf({ sni, alpn }).to;

it.each([
  ['secret.test', [], 'passthrough'],
  ['secret.test', ['acme-tls/1'], 'passthrough'],
  ['secret.test', ['tunnel/1'], 'passthrough'],
  ['shop.test', ['acme-tls/1'], 'challenge'],
  ['nobody.test', ['acme-tls/1'], 'challenge'],
  [null, ['acme-tls/1'], 'challenge'],
  ['shop.test', ['h2', 'tunnel/1'], 'clients'],
  ['shop.test', ['h2'], 'visitors'],
  ['shop.test', [], 'visitors'],
  ['nobody.test', [], 'nobody'],
  ['nobody.test', ['tunnel/1'], 'nobody'],
  [null, [], 'nobody'],
])('the server name %s with ALPN %j goes to %s', (sni, alpn, to) => {
  expect(destinationOf(sni, ...alpn)).toBe(to);
});

it('a destination has the route of the tunnel or the certificate of the name', () => {
  expect(sniRouter.destinationOf({ sni: 'secret.test', alpn: [] })).toEqual({ to: 'passthrough', route });
  expect(sniRouter.destinationOf({ sni: 'shop.test', alpn: [] })).toMatchObject({
    certificate: certificates.find('shop.test'),
  });
});

it('a challenge has a name only if the edge knows the name', () => {
  const alpn = ['acme-tls/1'];
  expect(sniRouter.destinationOf({ sni: 'shop.test', alpn })).toEqual({ to: 'challenge', name: 'shop.test' });
  for (const sni of ['nobody.test', null])
    expect(sniRouter.destinationOf({ sni, alpn })).toEqual({ to: 'challenge', name: null });
});

it('without clients and with a certificate for all names, every ClientHello goes to visitors', () => {
  const store = emptyStore();
  store.setForAll(makeCertificate('all.test'));
  const open = new SniRouter({ certificates: store, passthrough: null, challenges: null, takesClients: false });
  for (const sni of ['nobody.test', null]) expect(open.destinationOf({ sni, alpn: ['tunnel/1'] }).to).toBe('visitors');
});
