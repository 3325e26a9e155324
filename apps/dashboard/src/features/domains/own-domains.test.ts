import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { makeCertificate, makeDomain } from './own-domain.fixture.ts';
import {
  domainLimitText,
  domainOf,
  domainWords,
  hrefOf,
  isWaiting,
  refreshMs,
  secondsToWait,
  typedName,
} from './own-domains.ts';

describe('the domain page', () => {
  it.each([
    ['its records', makeDomain({ state: 'pending' }), true],
    ['an order', makeDomain({ certificate: makeCertificate({ state: 'ordering' }) }), true],
    ['an order to begin', makeDomain({ certificate: makeCertificate({ state: 'none' }) }), true],
    ['nothing when all is there', makeDomain(), false],
    ['nothing when no certificate is wanted', makeDomain({ certificate: null }), false],
    ['nothing when it has failed', makeDomain({ state: 'failed' }), false],
    [
      'no order of one that lapsed',
      makeDomain({ state: 'lapsed', certificate: makeCertificate({ state: 'none' }) }),
      false,
    ],
  ])('waits for %s', (_, domain, waits) => {
    expect(isWaiting(domain)).toBe(waits);
  });

  it('refreshes more often while a domain of the list is pending', () => {
    expect(refreshMs([makeDomain(), makeDomain({ state: 'pending' })])).toBeLessThan(refreshMs([makeDomain()]));
  });
});

it.each([
  ['  Shop.Example.com ', 'shop.example.com'],
  ['https://shop.example.com/cart?x=1', 'shop.example.com'],
  ['HTTP://shop.example.com', 'shop.example.com'],
  ['shop.example.com.', 'shop.example.com'],
  ['*.shop.example.com', '*.shop.example.com'],
  ['Bücher.example', 'bücher.example'],
  ['not a name', 'not a name'],
  ['https://', ''],
])('the typed domain %j becomes %j', (typed, name) => {
  expect(typedName(typed)).toBe(name);
});

it('a domain link exists for verified domains except wildcards, and uses https once a certificate exists', () => {
  expect(hrefOf(makeDomain())).toBe('https://shop.example.com');
  expect(hrefOf(makeDomain({ certificate: null }))).toBe('http://shop.example.com');
  expect(hrefOf(makeDomain({ certificate: makeCertificate({ state: 'ordering', not_after: null }) }))).toBe(
    'http://shop.example.com',
  );
  expect(hrefOf(makeDomain({ certificate: makeCertificate({ state: 'renewing' }) }))).toBe('https://shop.example.com');
  expect(hrefOf(makeDomain({ state: 'pending' }))).toBeNull();
  expect(hrefOf(makeDomain({ name: '*.shop.example.com', wildcard: true }))).toBeNull();
});

describe('the domain that belongs to a tunnel', () => {
  const list = [
    makeDomain(),
    makeDomain({ id: 'wild', name: '*.shop.example.com', wildcard: true }),
    makeDomain({ id: 'db', name: 'db.example.com' }),
    makeDomain({ id: 'short', name: 'a.shop' }),
  ];
  it.each([
    ['http', 'shop.example.com', 'https://shop.example.com', 'dom-1'],
    ['http', '*.shop.example.com', 'https://*.shop.example.com', 'wild'],
    ['http', 'eu.shop.example.com', 'http://eu.shop.example.com:8000', 'wild'],
    ['http', 'a.b.shop.example.com', 'https://a.b.shop.example.com', undefined],
    ['tcp', 'db.example.com', 'tls://db.example.com:443', 'db'],
    ['http', 'shop.example.com', undefined, 'dom-1'],
    ['http', 'shop', 'https://shop.tunnels.example.net', undefined],
    // The nested name a.shop below the server's domain looks like the custom domain a.shop.
    ['http', 'a.shop', 'https://a.shop.tunnels.example.net', undefined],
    ['udp', '20153', 'udp://shop.example.com:20153', undefined],
    ['p2p', 'shop.example.com', undefined, undefined],
  ] as const)('is found for %s %s at %s', (protocol, label, url, id) => {
    const entry = { protocol, label, ...(url === undefined ? {} : { public_url: url }) };
    expect(domainOf(entry, list)?.id).toBe(id);
  });
});

it('the client command for a domain quotes a wildcard for the shell', () => {
  expect(domainWords('shop.example.com')).toBe('http 3000 --domain shop.example.com');
  expect(domainWords('*.shop.example.com')).toBe("http 3000 --domain '*.shop.example.com'");
});

it('the seconds to wait are read from an error with the field `seconds`', () => {
  expect(secondsToWait(Fault.fromWire('LOGIN_THROTTLED', 'too soon', { seconds: 4 }))).toBe(4);
  expect(secondsToWait(Fault.fromWire('NOT_KNOWN_HERE', 'too soon', { seconds: 4 }))).toBe(4);
  expect(secondsToWait(Fault.fromWire('LOGIN_THROTTLED', 'too soon', { seconds: 0 }))).toBeNull();
  expect(secondsToWait(Fault.fromWire('DATABASE_AWAY', 'away'))).toBeNull();
  expect(secondsToWait(null)).toBeNull();
});

it.each([
  [2, 3, '2 of 3 used on your free plan.'],
  [3, 3, '3 of 3 used on your free plan. Remove a domain to add another.'],
  [5, 3, '5 used; your free plan includes 3. Existing domains keep working until you remove them.'],
  [5, null, '5 used. Your free plan has no limit.'],
])('%i domains of %j allowed are described as: %s', (count, limit, text) => {
  expect(domainLimitText(count, 'free', limit)).toBe(text);
});
