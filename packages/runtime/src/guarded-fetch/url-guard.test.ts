// The guard for untrusted URLs, with the shared rules for addresses.
import { problemOfAddress } from '@tunnel/rules/net';
import { describe, expect, it } from 'vitest';
import type { NameLookup } from './name-lookup.ts';
import { UrlGuard } from './url-guard.ts';

const never: NameLookup = () => new Promise(() => {});
const answering =
  (...addresses: string[]): NameLookup =>
  () =>
    Promise.resolve(addresses);
const guardOf = (lookup: NameLookup | undefined, allowPrivate = false): UrlGuard =>
  new UrlGuard({ problemOfAddress: (address) => problemOfAddress(address, allowPrivate), lookup });
const forever = (): AbortSignal => new AbortController().signal;

describe('a URL with an IP address', () => {
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
    ['http://0xa9fea9fe/latest/meta-data', 'a cloud metadata address'],
    ['http://[fd00:ec2::254]/latest', 'a cloud metadata address'],
    ['http://100.100.100.200/', 'a cloud metadata address'],
    ['http://169.254.1.1/', 'a link-local address'],
    ['http://[fe80::1]/', 'a link-local address'],
    ['http://[fd12::1]/', 'a unique local address'],
    ['http://100.64.0.1/', 'a carrier-grade NAT address'],
    ['http://255.255.255.255/', 'the broadcast address'],
    ['http://[ff02::1]/', 'a multicast address'],
  ])('%j is refused: %s', (text, problem) => {
    const reading = guardOf(never).read(text);
    expect(reading).toMatchObject({ kind: 'refused', reason: expect.stringMatching(new RegExp(` is ${problem}$`)) });
  });

  it.each(['https://1.1.1.1/x', 'http://16843009/', 'https://[2606:4700::1111]/', 'http://[::ffff:8.8.8.8]/'])(
    '%s is accepted without a lookup',
    async (text) => {
      const guard = guardOf(() => Promise.reject(new Error('asked')));
      expect(guard.read(text).kind).toBe('url');
      expect((await guard.pin(new URL(text), forever())).kind).toBe('pinned');
    },
  );

  it.each(['http://127.0.0.1:9000/', 'http://[::1]/', 'http://10.1.2.3/', 'http://169.254.1.1/', 'http://[fd12::1]/'])(
    '%s is accepted where private addresses are allowed',
    (text) => expect(guardOf(never, true).read(text).kind).toBe('url'),
  );

  it.each([
    'http://169.254.169.254/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://0/',
    'http://[ff02::1]/',
    'http://240.0.0.1/',
  ])('%s is refused even where private addresses are allowed', (text) =>
    expect(guardOf(never, true).read(text).kind).toBe('refused'),
  );
});

describe('a URL with a host name', () => {
  it.each([
    ['', 'it is not a URL'],
    ['not a url', 'it is not a URL'],
    ['http://', 'it is not a URL'],
    ['http://[fe80::1%25eth0]/', 'it is not a URL'],
    ['http://300.1.1.1/', 'it is not a URL'],
    ['ftp://hooks.example/', 'it is not an http or https URL'],
    ['file:///etc/passwd', 'it is not an http or https URL'],
    ['javascript:alert(1)', 'it is not an http or https URL'],
    ['http://bob:hunter2@hooks.example/x', 'the URL for hooks.example has a user name in it'],
    [`https://hooks.example/${'x'.repeat(2048)}`, 'it is too long'],
  ])('%j is refused without a lookup', (text, reason) => {
    expect(guardOf(never).read(text)).toMatchObject({ kind: 'refused', reason });
  });

  it('is read without its fragment', () => {
    expect(guardOf(never).read('https://hooks.example/a?b#c')).toEqual({
      kind: 'url',
      url: new URL('https://hooks.example/a?b'),
    });
  });

  it.each([
    ['http://hooks.internal/s3cret?token=s3cret', ['10.0.0.5'], 'hooks.internal resolves to a private address'],
    ['http://a.example/', ['93.184.216.34', '127.0.0.1'], 'a.example resolves to a loopback address'],
    ['http://a.example/', ['2606:4700::1', 'fe80::1%eth0'], 'a.example resolves to an address with a zone'],
    ['http://a.example./', ['::ffff:10.0.0.1'], 'a.example. resolves to a private address'],
    ['http://A.Example/', ['nonsense'], 'a.example resolves to not an IP address'],
  ])('%s with %j is refused, and the reason names only the host', async (text, addresses, reason) => {
    expect(await guardOf(answering(...addresses)).pin(new URL(text), forever())).toEqual({ kind: 'refused', reason });
  });

  it.each(['http://localhost/', 'http://LOCALHOST:80/', 'http://localhost./', 'https://x.localhost/'])(
    '%s is a loopback address, whatever DNS says',
    async (text) => {
      const verdict = await guardOf(undefined).pin(new URL(text), forever());
      expect(verdict).toMatchObject({
        kind: 'refused',
        reason: expect.stringMatching(/resolves to a loopback address$/),
      });
    },
  );

  it('is pinned to all its addresses when every address is allowed', async () => {
    const verdict = await guardOf(answering('93.184.216.34', '2606:4700::1')).pin(
      new URL('https://hooks.example/'),
      forever(),
    );
    expect(verdict).toEqual({ kind: 'pinned', addresses: ['93.184.216.34', '2606:4700::1'] });
  });

  it('that does not resolve, or not in time, is reported as unresolved', async () => {
    const unresolved = { kind: 'unresolved', reason: 'typo.example does not resolve' };
    const url = new URL('https://typo.example/s3cret');
    expect(await guardOf(answering()).pin(url, forever())).toEqual(unresolved);
    expect(await guardOf(() => Promise.reject(new Error('ENOTFOUND'))).pin(url, forever())).toEqual(unresolved);
    expect(await guardOf(never).pin(url, AbortSignal.abort())).toEqual(unresolved);
  });
});
