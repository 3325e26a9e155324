import { describe, expect, it } from 'vitest';
import { ownAuthority } from './own-authorities.rules.ts';

const at = (url: string, listensOn: string) => {
  const { hostname: host, port, protocol } = new URL(url);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return ownAuthority({ published: { host, port: Number(port || defaultPort) }, defaultPort, listensOn });
};

describe('a server on loopback', () => {
  const isOwn = at('http://localhost:8080', '127.0.0.1');

  it.each([
    ...[
      'localhost:8080',
      'localhost',
      'LOCALHOST:8080',
      'localhost.:8080',
      '127.0.0.1:8080',
      '127.0.0.1',
      '127.9.8.7:1',
    ],
    ...['[::1]:8080', '[::1]', '[0:0:0:0:0:0:0:1]:8080', 'localhost:9000'],
  ])('responds to the host %s', (authority) => expect(isOwn(authority)).toBe(true));

  it.each([
    ...[
      '',
      'evil.example',
      'evil.example:8080',
      '127.0.0.1.evil.example:8080',
      'localhost.evil.example',
      'tunnel.localhost',
    ],
    ...[
      'evil@localhost:8080',
      'localhost:8080@evil',
      'localhost:8080/evil',
      'localhost,evil',
      'localhost evil',
      'localhost:',
    ],
    ...[
      'localhost:080808',
      '::1',
      '[::1',
      '[::1]x',
      '10.0.0.1',
      '0.0.0.0:8080',
      '[::]',
      '192.168.0.1:8080',
      'localhost..',
    ],
    ...['2130706433:8080', '0x7f.1', '[localhost]'],
  ])('does not respond to the host %j', (authority) => expect(isOwn(authority)).toBe(false));

  it('also responds to its published host, as sent by a proxy in front', () => {
    const behindProxy = at('https://Tunnel.example', 'localhost');
    for (const authority of ['tunnel.example', 'tunnel.example:443', 'TUNNEL.EXAMPLE.', '127.0.0.1:8080']) {
      expect([authority, behindProxy(authority)]).toEqual([authority, true]);
    }
    for (const authority of ['tunnel.example:80', 'tunnel.example:8080', 'a.tunnel.example', 'example']) {
      expect([authority, behindProxy(authority)]).toEqual([authority, false]);
    }
  });
});

describe('a server on a public address', () => {
  it.each(['0.0.0.0', '::', '192.0.2.1', 'tunnel.example'])(
    'at %s responds only to its published authority',
    (host) => {
      const isOwn = at('http://tunnel.example:8080', host);
      expect(isOwn('tunnel.example:8080')).toBe(true);
      for (const authority of ['tunnel.example', 'localhost:8080', '127.0.0.1:8080', '[::1]:8080', '192.0.2.1:8080']) {
        expect([authority, isOwn(authority)]).toEqual([authority, false]);
      }
    },
  );

  it('can be published by IP address', () => {
    expect(at('http://[2001:db8::1]:8080', '::')('[2001:DB8::1]:8080')).toBe(true);
    expect(at('http://192.0.2.1', '0.0.0.0')('192.0.2.1:80')).toBe(true);
  });
});
