// The choice of a certificate for a name, the number of ready certificates, and the rate of preparing certificates.
import { TlsTerms } from '@tunnel/http-shell';
import { Secret } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import { CertificateStore, type StoredCertificate } from './certificate-store.ts';
import { makeCertificate, makeShortKey } from './made-certificate.fixture.ts';

const one = makeCertificate('one.example');
const two = makeCertificate('two.example');

let clock: FakeClock;
let store: CertificateStore;

const open = (limits: { contextsMax?: number; contextsPerSecond?: number } = {}): void => {
  clock = new FakeClock();
  const terms = new TlsTerms(new Secret('of these tests'), clock);
  store = new CertificateStore({ terms, clock, domain: 'edge.test', ...limits });
};

beforeEach(() => open());

const find = (host: string | null): StoredCertificate => {
  const found = store.find(host);
  if (found === null) throw new Error(`nothing for ${host}`);
  return found;
};

it('an exact certificate comes before a wildcard, and a wildcard before the certificate for all names', () => {
  expect(store.find('shop.edge.test')).toBeNull();
  expect(store.set(['*.edge.test'], one)).toBeNull();
  expect(store.set(['shop.edge.test', 'other.example'], two)).toBeNull();
  expect(find('web.edge.test').pair).toBe(one);
  expect(find('shop.edge.test').pair).toBe(two);
  expect(find('other.example').pair).toBe(two);
  // A wildcard covers a single label, and not the parent domain.
  for (const host of ['a.web.edge.test', 'edge.test', 'test', 'localhost']) expect(store.find(host)).toBeNull();
  // A tunnel for the names below a domain has the wildcard as its name.
  expect([store.covers('*.edge.test'), store.covers('*.shop.edge.test')]).toEqual([true, false]);
  const files = makeCertificate('files.example');
  store.setForAll(files);
  for (const host of ['a.web.edge.test', 'localhost', null]) expect(find(host).pair).toBe(files);
  expect(find('web.edge.test').pair).toBe(one);
  expect(store.covers('whoever.example')).toBe(true);
  store.setForAll(null);
  expect(store.covers('whoever.example')).toBe(false);
});

it('a certificate covers a subdomain only if it lists the name, but is presented for the subdomain anyway', () => {
  store.setForAll(makeCertificate('edge.test', '*.edge.test', '*.shop.edge.test'));
  const covered = ['edge.test', 'shop.edge.test', '*.edge.test', 'a.shop.edge.test', '*.shop.edge.test'];
  expect(covered.map((host) => store.covers(host))).toEqual(covered.map(() => true));
  const others = ['a.web.edge.test', '*.web.edge.test', 'a.b.shop.edge.test'];
  expect(others.map((host) => store.covers(host))).toEqual(others.map(() => false));
  // Visitors of uncovered names get the certificate anyway, and can decide to continue.
  expect(others.every((host) => store.find(host) !== null)).toBe(true);
});

it('a visitor without a server name gets the certificate of the domain', () => {
  expect(store.find(null)).toBeNull();
  store.set(['*.edge.test'], one);
  expect(store.find(null)).toBeNull();
  store.set(['edge.test'], two);
  expect(find(null).pair).toBe(two);
});

it('removing a name keeps the certificate for its remaining names', () => {
  store.set(['a.test', 'b.test'], one);
  store.remove(['a.test', 'never.test']);
  expect([store.covers('a.test'), store.covers('b.test'), store.size]).toEqual([false, true, 1]);
  store.set(['b.test'], two);
  expect(find('b.test').pair).toBe(two);
});

it('a pair that does not match is refused, and the previous pair stays', () => {
  store.set(['a.test'], one);
  expect(store.set(['a.test'], { cert: two.cert, key: one.key })).toBe(
    'the private key does not match the certificate',
  );
  expect(store.set(['a.test'], { cert: Buffer.from('no certificate'), key: one.key })).toMatch(/PEM/i);
  expect(store.set(['a.test'], { cert: one.cert, key: Buffer.from('no key') })).not.toBeNull();
  expect(find('a.test').pair).toBe(one);
});

it('a limited number of contexts stays ready, and the least recently used is dropped', async () => {
  open({ contextsMax: 3 });
  const ready = (host: string): boolean => find(host).context !== null;
  for (const name of ['a', 'b', 'c', 'd']) store.set([`${name}.test`], one);
  for (const name of ['a', 'b', 'c', 'a', 'd']) {
    expect(store.contextOf(find(`${name}.test`))).not.toBeNull();
    await clock.advance(10);
  }
  expect(['a', 'b', 'c', 'd'].map((name) => ready(`${name}.test`))).toEqual([true, false, true, true]);
  const again = store.contextOf(find('a.test'));
  expect(store.contextOf(find('a.test'))).toBe(again);
});

const waiter = (told: string[], name: string) => ({
  onContext: () => void told.push(name),
  onBroken: () => void told.push(`${name} is broken`),
});

it('contexts are built at a limited rate, and waiting visitors are served in order', async () => {
  open({ contextsPerSecond: 100 });
  const told: string[] = [];
  const names = Array.from({ length: 150 }, (_, n) => `n${n}.test`);
  for (const name of names) store.set([name], one);
  for (const name of names) {
    const stored = find(name);
    if (store.contextOf(stored) === null) store.wait(stored, waiter(told, name));
    else told.push(name);
  }
  expect(told).toEqual(['n0.test']);
  await clock.advance(500);
  expect(told.length).toBeGreaterThan(40);
  expect(told.length).toBeLessThanOrEqual(51);
  // A new visitor does not overtake visitors that wait.
  store.set(['late.test'], one);
  expect(store.contextOf(find('late.test'))).toBeNull();
  await clock.advance(5000);
  expect(told).toEqual(names);
  expect(store.contextOf(find('late.test'))).not.toBeNull();
});

it('no context is built for visitors that have left, and one context serves several waiting visitors', async () => {
  open({ contextsPerSecond: 10 });
  const told: string[] = [];
  for (const name of ['a', 'b', 'c']) store.set([`${name}.test`], one);
  store.contextOf(find('a.test'));
  const b = find('b.test');
  const c = find('c.test');
  const left = waiter(told, 'left');
  store.wait(b, left);
  store.wait(c, waiter(told, 'first'));
  store.wait(c, waiter(told, 'second'));
  store.leave(b, left);
  await clock.advance(100);
  expect(told).toEqual(['first', 'second']);
  await clock.advance(1000);
  expect([b.context === null, c.context === null]).toEqual([true, false]);
});

it('the context for all names is ready at once, even at the rate limit', () => {
  open({ contextsPerSecond: 1, contextsMax: 1 });
  for (const name of ['a.test', 'b.test']) store.set([name], one);
  store.contextOf(find('a.test'));
  expect(store.contextOf(find('b.test'))).toBeNull();
  store.setForAll(two);
  expect(store.contextOf(find('nobody.test'))).not.toBeNull();
});

it('visitors that wait for a broken certificate are notified, and later visitors are served', async () => {
  open({ contextsPerSecond: 10 });
  const told: string[] = [];
  store.set(['short.test'], makeShortKey());
  store.set(['a.test'], one);
  for (const name of ['short.test', 'a.test']) {
    expect(store.contextOf(find(name))).toBeNull();
    store.wait(find(name), waiter(told, name));
  }
  await clock.advance(1000);
  expect(told).toEqual(['short.test is broken', 'a.test']);
});

it('local certificates are issued in order at a limited rate, and not for visitors that have left', async () => {
  open({ contextsPerSecond: 10, contextsMax: 100 });
  const made: string[] = [];
  store.set(['localhost'], one);
  store.setMaker({
    covers: (host) => host.endsWith('.localhost'),
    issue: async (host) => {
      made.push(host);
      return two;
    },
  });
  const told: string[] = [];
  for (let at = 0; at < 10_000; at += 1) {
    const found = find(`n${at}.localhost`);
    const stranger = waiter([], '');
    expect(store.contextOf(found)).toBeNull();
    store.wait(found, stranger);
    if (at >= 5) store.leave(found, stranger);
  }
  store.wait(find('honest.localhost'), waiter(told, 'honest'));
  await clock.advance(0);
  expect(made).toEqual(['n0.localhost']);
  await eventually(async () => {
    await clock.advance(100);
    expect(told).toEqual(['honest']);
  });
  expect(made).toEqual([0, 1, 2, 3, 4].map((at) => `n${at}.localhost`).concat('honest.localhost'));
  // A certificate is issued for a visitor that comes back.
  store.wait(find('n7.localhost'), waiter(told, 'back'));
  await eventually(async () => {
    await clock.advance(100);
    expect(told).toEqual(['honest', 'back']);
  });
});
