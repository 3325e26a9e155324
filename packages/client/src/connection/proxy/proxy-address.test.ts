import { inspect } from 'node:util';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { type Proxy, parseProxy } from './proxy-address.ts';

const source = '--proxy';
const credentialsOf = ({ credentials }: Proxy): string | null =>
  credentials === null ? null : `${credentials.user.reveal()} ${credentials.password.reveal()}`;

const refusalOf = (parse: () => unknown): Fault => {
  try {
    parse();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('it was taken');
};

describe('the URL of a proxy', () => {
  it.each([
    ['http://proxy:3128', 'http', 'proxy', 3128],
    ['https://proxy.example.com:8443/', 'https', 'proxy.example.com', 8443],
    ['socks5://10.0.0.1:1080', 'socks5', '10.0.0.1', 1080],
    ['socks5h://[::1]:9050', 'socks5h', '::1', 9050],
    ['HTTP://Proxy:80', 'http', 'proxy', 80],
    ['https://proxy:80', 'https', 'proxy', 80],
    ['http://proxy', 'http', 'proxy', 80],
    ['https://proxy', 'https', 'proxy', 443],
    ['socks5://proxy', 'socks5', 'proxy', 1080],
    ['socks5h://u:80@proxy', 'socks5h', 'proxy', 1080],
  ])('%s', (text, kind, host, port) => {
    expect(parseProxy(text, { source })).toMatchObject({ kind, host, port });
  });

  it.each([
    ['', 'must be http://host:port'],
    ['proxy:3128', 'must be http://host:port'],
    ['ftp://proxy:21', 'must be http://host:port'],
    ['socks4://proxy:1080', 'must be http://host:port'],
    ['constructor://proxy:1080', 'must be http://host:port'],
    ['http://', 'must be http://host:port'],
    ['http://sesame@', 'must be http://host:port'],
    ['http://proxy:0', 'needs a port from'],
    ['http://proxy:70000', 'must be http://host:port'],
    ['http://proxy:3128/sesame', 'has no path'],
    ['http://proxy:3128?sesame', 'has no path'],
    ['http://user:%zzsesame@proxy:3128', 'has a percent sign'],
    ['http://user:a%0d%0asesame@proxy:3128', 'invalid user name or password'],
    ['http://us%3Aer:sesame@proxy:3128', 'invalid user name or password'],
    ['http://:sesame@proxy:3128', 'invalid user name or password'],
    [`http://user:${'sesame'.repeat(50)}@proxy:3128`, 'longer than 255 bytes'],
  ])('%j is refused, and the error repeats no part of the URL', (text, why) => {
    const fault = refusalOf(() => parseProxy(text, { source }));
    expect([fault.code, fault.message]).toEqual(['CLIENT_USAGE', expect.stringContaining(why)]);
    expect(inspect(fault, { depth: 9 })).not.toContain('sesame');
  });

  it('needs no scheme in an environment variable, where http is the default', () => {
    const given = { source: 'HTTPS_PROXY', schemeOptional: true };
    expect(parseProxy(' u:p@proxy:3128 ', given)).toMatchObject({ kind: 'http', host: 'proxy', port: 3128 });
    expect(() => parseProxy('socks://proxy:1080', given)).toThrow('HTTPS_PROXY must be');
  });

  it('yields decoded credentials, and shows them in no output', () => {
    const proxy = parseProxy('http://ann%40corp:se%3Asame%20%C3%BC@proxy:3128', { source });
    expect(credentialsOf(proxy)).toBe('ann@corp se:same ü');
    const shown = inspect(proxy, { depth: 9 }) + JSON.stringify(proxy) + String(proxy.text);
    expect(shown).not.toMatch(/ann|se:same|se%3A/);
    expect(proxy.text).toBe('http://proxy:3128');
    expect(credentialsOf(parseProxy('http://ann@proxy:3128', { source }))).toBe('ann ');
  });
});

describe('the content of proxy_auth_file', () => {
  it('is used when the proxy URL has no user', () => {
    const auth = new Secret('ann:se:same\n');
    expect(credentialsOf(parseProxy('http://proxy:3128', { source, auth }))).toBe('ann se:same');
    expect(credentialsOf(parseProxy('http://bob:other@proxy:3128', { source, auth }))).toBe('bob other');
    expect(credentialsOf(parseProxy('http://proxy:3128', { source }))).toBeNull();
  });

  it.each(['', 'sesame', ':sesame', 'ann:se\nsame'])(
    '%j is refused, and the error does not repeat the content',
    (text) => {
      const fault = refusalOf(() => parseProxy('http://proxy:3128', { source, auth: new Secret(text) }));
      expect(fault.code).toBe('CLIENT_USAGE');
      expect(inspect(fault, { depth: 9 })).not.toMatch(/sesame|se\\nsame/);
    },
  );
});
