import type { NameLookup } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { AlertUrls } from './alert-url.ts';

const never: NameLookup = () => new Promise(() => {});
const answering =
  (...addresses: string[]): NameLookup =>
  () =>
    Promise.resolve(addresses);
const urlsOf = (lookup: NameLookup, allowPrivate = false, clock = new FakeClock()): AlertUrls =>
  new AlertUrls({ allowPrivate, clock, lookup });

describe('an alert URL with an address in it', () => {
  it.each([
    ['http://127.0.0.1/', 'a loopback address'],
    ['http://127.0.0.1./', 'a loopback address'],
    ['http://127.1/', 'a loopback address'],
    ['http://0x7f.1/', 'a loopback address'],
    ['http://0X7F.0x0.0X0.0x1:80/', 'a loopback address'],
    ['http://0x7f000001/', 'a loopback address'],
    ['http://2130706433/', 'a loopback address'],
    ['http://017700000001/', 'a loopback address'],
    ['http://0177.0.0.1/', 'a loopback address'],
    ['http://%31%32%37.0.0.1/', 'a loopback address'],
    ['http://１２７.０.０.１/', 'a loopback address'],
    ['http://127。0。0。1/', 'a loopback address'],
    ['http://①②⑦.0.0.1/', 'a loopback address'],
    ['http:\\\\127.0.0.1\\x', 'a loopback address'],
    ['  ht\ntp://127.0\t.0.1/  ', 'a loopback address'],
    ['http:127.0.0.1', 'a loopback address'],
    ['https://[::1]/', 'a loopback address'],
    ['http://[0:0:0:0:0:0:0:1]:8080/', 'a loopback address'],
    ['http://[::ffff:127.0.0.1]/', 'a loopback address'],
    ['http://[::ffff:7f00:1]/', 'a loopback address'],
    ['http://[64:ff9b::127.0.0.1]/', 'a loopback address'],
    ['http://[::127.0.0.1]/', 'a reserved address'],
    ['http://0/', 'an unspecified address'],
    ['http://0.0.0.0:4041/api', 'an unspecified address'],
    ['http://[::]/', 'an unspecified address'],
    ['http://10.0.0.5/', 'a private address'],
    ['http://192.168.1', 'a private address'],
    ['http://3232235777/', 'a private address'],
    ['http://0xa9fea9fe/latest/meta-data', 'an address of cloud metadata'],
    ['http://[fd00:ec2::254]/latest', 'an address of cloud metadata'],
    ['http://100.100.100.200/', 'an address of cloud metadata'],
    ['http://169.254.1.1/', 'a link-local address'],
    ['http://[fe80::1]/', 'a link-local address'],
    ['http://[fd12::1]/', 'a unique local address'],
    ['http://100.64.0.1/', 'an address of carrier-grade NAT'],
    ['http://255.255.255.255/', 'the broadcast address'],
    ['http://[ff02::1]/', 'a multicast address'],
  ])('%j is refused: %s', (text, problem) => {
    const reading = urlsOf(never).read(text);
    expect(reading).toMatchObject({ kind: 'refused', reason: expect.stringMatching(new RegExp(` is ${problem}$`)) });
  });

  it.each(['https://1.1.1.1/x', 'http://16843009/', 'https://[2606:4700::1111]/', 'http://[::ffff:8.8.8.8]/'])(
    '%s passes, and nobody is asked',
    async (text) => {
      const urls = urlsOf(() => Promise.reject(new Error('asked')));
      expect(urls.read(text).kind).toBe('url');
      expect(await urls.checkAtRegistration(text)).toBeNull();
      expect((await urls.pin(new URL(text), new AbortController().signal)).kind).toBe('pinned');
    },
  );

  it.each(['http://127.0.0.1:9000/', 'http://[::1]/', 'http://10.1.2.3/', 'http://169.254.1.1/', 'http://[fd12::1]/'])(
    '%s passes where private addresses are allowed',
    (text) => expect(urlsOf(never, true).read(text).kind).toBe('url'),
  );

  it.each([
    'http://169.254.169.254/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://0/',
    'http://[ff02::1]/',
    'http://240.0.0.1/',
  ])('%s passes nowhere', (text) => expect(urlsOf(never, true).read(text).kind).toBe('refused'));
});

describe('an alert URL', () => {
  it.each([
    ['', 'alert webhook refused: it is not a URL'],
    ['not a url', 'alert webhook refused: it is not a URL'],
    ['http://', 'alert webhook refused: it is not a URL'],
    ['http://[fe80::1%25eth0]/', 'alert webhook refused: it is not a URL'],
    ['http://300.1.1.1/', 'alert webhook refused: it is not a URL'],
    ['ftp://hooks.example/', 'alert webhook refused: it is not an http or https URL'],
    ['file:///etc/passwd', 'alert webhook refused: it is not an http or https URL'],
    ['javascript:alert(1)', 'alert webhook refused: it is not an http or https URL'],
    ['http://bob:hunter2@hooks.example/x', 'alert webhook refused: the URL for hooks.example has a user name in it'],
    [`https://hooks.example/${'x'.repeat(2048)}`, 'alert webhook refused: it is too long'],
  ])('%j is refused before anybody is asked', async (text, warning) => {
    expect(await urlsOf(() => Promise.reject(new Error('asked'))).checkAtRegistration(text)).toBe(warning);
  });

  it.each([
    ['http://hooks.internal/s3cret?token=s3cret', ['10.0.0.5'], 'hooks.internal resolves to a private address'],
    ['http://a.example/', ['93.184.216.34', '127.0.0.1'], 'a.example resolves to a loopback address'],
    ['http://a.example/', ['2606:4700::1', 'fe80::1%eth0'], 'a.example resolves to an address with a zone'],
    ['http://a.example./', ['::ffff:10.0.0.1'], 'a.example. resolves to a private address'],
    ['http://A.Example/', ['nonsense'], 'a.example resolves to not an IP address'],
  ])('%s with %j is refused, by its host alone', async (text, addresses, reason) => {
    expect(await urlsOf(answering(...addresses)).checkAtRegistration(text)).toBe(`alert webhook refused: ${reason}`);
  });

  it.each(['http://localhost/', 'http://LOCALHOST:80/', 'http://localhost./', 'https://x.localhost/'])(
    '%s is this machine, whatever DNS says',
    async (text) => {
      const urls = new AlertUrls({ allowPrivate: false, clock: new FakeClock() });
      expect(await urls.checkAtRegistration(text)).toMatch(/resolves to a loopback address$/);
    },
  );

  it('is pinned to all its addresses when every one passes', async () => {
    const verdict = await urlsOf(answering('93.184.216.34', '2606:4700::1')).pin(
      new URL('https://hooks.example/'),
      new AbortController().signal,
    );
    expect(verdict).toEqual({ kind: 'pinned', addresses: ['93.184.216.34', '2606:4700::1'] });
  });

  it('gets a warning when its name does not resolve', async () => {
    const warning = 'alert webhook: typo.example does not resolve at present';
    expect(await urlsOf(answering()).checkAtRegistration('https://typo.example/s3cret')).toBe(warning);
    const failing = urlsOf(() => Promise.reject(new Error('ENOTFOUND')));
    expect(await failing.checkAtRegistration('https://typo.example/s3cret')).toBe(warning);
  });
});

describe('the check at a registration', () => {
  it('gives up after its time, and leaves no timer', async () => {
    const clock = new FakeClock();
    let isAborted = false;
    const urls = urlsOf(
      (_name, signal) => {
        signal.addEventListener('abort', () => (isAborted = true));
        return new Promise(() => {});
      },
      false,
      clock,
    );
    const check = urls.checkAtRegistration('https://slow.example/');
    await clock.advance(999);
    expect(isAborted).toBe(false);
    await clock.advance(1);
    expect(await check).toBeNull();
    expect(isAborted).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes no longer than it may; without time left nobody is asked, and what needs no asking is told all the same', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const silent = (): Promise<never> => {
      asked += 1;
      return new Promise(() => {});
    };
    const urls = urlsOf(silent, false, clock);
    const check = urls.checkAtRegistration('https://slow.example/', 300);
    await clock.advance(300);
    expect([await check, asked]).toEqual([null, 1]);
    expect([await urls.checkAtRegistration('https://slow.example/', 0), asked]).toEqual([null, 1]);
    expect(await urls.checkAtRegistration('http://127.0.0.1/', 0)).toMatch(/is a loopback address$/);
  });

  it('asks for a bounded number of names at once; further registrations are not warned', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const urls = urlsOf(
      () => {
        asked += 1;
        return new Promise(() => {});
      },
      false,
      clock,
    );
    const checks = Array.from({ length: 100 }, (_, n) => urls.checkAtRegistration(`https://h${n}.example/`));
    expect(await checks[99]).toBeNull();
    expect(asked).toBe(64);
    await clock.advance(1000);
    expect(new Set(await Promise.all(checks))).toEqual(new Set([null]));
    const oneMore = urls.checkAtRegistration('https://later.example/');
    expect(asked).toBe(65);
    await clock.advance(1000);
    await oneMore;
  });
});
