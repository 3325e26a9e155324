import { describe, expect, it } from 'vitest';
import { bypassesProxy, chooseProxy } from './proxy-choice.rules.ts';

const SERVER = { host: 'tunnels.example.com', port: 443 };
const choose = (explicit: string, env: Record<string, string>, target = SERVER) =>
  chooseProxy({ explicit, env }, target);

describe('the choice of a proxy', () => {
  it('prefers the explicit setting, then HTTPS_PROXY, then ALL_PROXY, in upper or lower case', () => {
    const env = { HTTPS_PROXY: 'a:1', https_proxy: 'b:2', ALL_PROXY: 'c:3', all_proxy: 'd:4' };
    const urls = [choose('http://x:9', env)];
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'] as const) {
      urls.push(choose('', env));
      // An empty environment variable counts as unset.
      env[name] = ' ';
    }
    expect(urls.map((choice) => choice.kind === 'proxy' && [choice.url, choice.source])).toEqual([
      ['http://x:9', 'proxy'],
      ['a:1', 'HTTPS_PROXY'],
      ['b:2', 'https_proxy'],
      ['c:3', 'ALL_PROXY'],
      ['d:4', 'all_proxy'],
    ]);
    expect(choose('', env)).toEqual({ kind: 'direct', because: 'not-set' });
  });

  it('ignores HTTP_PROXY, which applies to another scheme', () => {
    expect(choose('', { HTTP_PROXY: 'a:1', http_proxy: 'b:2' })).toEqual({ kind: 'direct', because: 'not-set' });
  });

  it.each(['none', 'NONE', ' none '])(
    'is a direct connection for the explicit setting %s, whatever the environment says',
    (explicit) => {
      expect(choose(explicit, { HTTPS_PROXY: 'a:1' })).toEqual({ kind: 'direct', because: 'none' });
    },
  );

  it.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', 'localhost', 'LocalHost.'])(
    'is a direct connection to %s, this computer, unless a proxy is set explicitly',
    (host) => {
      const target = { host, port: 4040 };
      expect(choose('', { HTTPS_PROXY: 'a:1' }, target)).toEqual({ kind: 'direct', because: 'loopback' });
      expect(choose('http://x:9', {}, target)).toMatchObject({ kind: 'proxy', url: 'http://x:9' });
    },
  );

  it('is a direct connection to hosts in NO_PROXY, unless a proxy is set explicitly', () => {
    for (const name of ['NO_PROXY', 'no_proxy']) {
      const env = { HTTPS_PROXY: 'a:1', [name]: 'example.com' };
      expect(choose('', env)).toEqual({ kind: 'direct', because: 'no-proxy' });
      expect(choose('http://x:9', env)).toMatchObject({ kind: 'proxy' });
    }
  });
});

describe('NO_PROXY', () => {
  it.each([
    // NO_PROXY entries: host names, including their subdomains
    ['example.com', 'example.com', true],
    ['example.com', 'a.b.example.com', true],
    ['.example.com', 'a.example.com', true],
    ['.example.com', 'example.com', true],
    ['*.example.com', 'a.example.com', true],
    ['example.com', 'notexample.com', false],
    ['example.com', 'example.com.evil.net', false],
    ['EXAMPLE.com', 'Tunnels.Example.COM', true],
    ['example.com.', 'example.com', true],
    ['example.com', 'example.com.', true],
    ['com', 'example.com', true],
    ['.', 'example.com', false],
    ['', 'example.com', false],
    // NO_PROXY values with several entries
    ['a.net, example.com ,b.net', 'example.com', true],
    ['a.net b.net\texample.com', 'example.com', true],
    [',,,', 'example.com', false],
    // NO_PROXY entries for every host
    ['*', 'example.com', true],
    ['a.net,*', '203.0.113.9', true],
    ['*:443', 'example.com', true],
    ['*:80', 'example.com', false],
    // NO_PROXY entries with a port
    ['example.com:443', 'example.com', true],
    ['example.com:4040', 'example.com', false],
    ['example.com:', 'example.com', true],
    ['example.com:x', 'example.com', false],
    ['.example.com:443', 'a.example.com', true],
    ['203.0.113.9:443', '203.0.113.9', true],
    ['203.0.113.9:444', '203.0.113.9', false],
    ['[2001:db8::1]:443', '2001:db8::1', true],
    ['[2001:db8::1]:444', '2001:db8::1', false],
    ['[2001:db8::1]', '2001:db8::1', true],
    // NO_PROXY entries: IP addresses
    ['203.0.113.9', '203.0.113.9', true],
    ['203.0.113.9', '203.0.113.90', false],
    ['2001:db8::1', '2001:db8:0:0::1', true],
    ['203.0.113.9', '::ffff:203.0.113.9', true],
    ['113.9', '203.0.113.9', false],
    ['10', '10.0.0.0', false],
    // NO_PROXY entries: networks
    ['203.0.113.0/24', '203.0.113.9', true],
    ['203.0.112.0/24', '203.0.113.9', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['2001:db8::/32', '2001:db8:1::5', true],
    ['2001:db8::/32', '203.0.113.9', false],
    ['203.0.113.0/33', '203.0.113.9', false],
    ['203.0.113.0/24', 'example.com', false],
    ['fd00::/8,203.0.113.0/x,example.com', 'example.com', true],
  ])('%j and %s: %s', (noProxy, host, bypassed) => {
    expect(bypassesProxy(noProxy, { host, port: 443 })).toBe(bypassed);
  });
});
