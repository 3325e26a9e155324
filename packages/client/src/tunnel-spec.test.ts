import { describe, expect, it } from 'vitest';
import { checkTunnelSpec, localAddress, type TunnelSpec, wishesOf } from './tunnel-spec.ts';

const http = { protocol: 'http', localPort: 3000 } as const;
const tcp = { protocol: 'tcp', localPort: 5432 } as const;
const DEFAULTS = { host_header: 'keep', local_protocol: 'http1', capture: true };

describe('what the edge is asked for', () => {
  it.each([
    ['a tcp tunnel has no wish', tcp, {}, {}],
    ['a port that was given', { ...tcp, remotePort: 1 }, { assignedPort: 2 }, { remote_port: 1 }],
    ['a port that it had', tcp, { assignedPort: 2 }, { preferred_port: 2 }],
    ['an http tunnel has its defaults', http, {}, DEFAULTS],
    ['a name that was given', { ...http, subdomain: 'a' }, { assignedSubdomain: 'a' }, { ...DEFAULTS, subdomain: 'a' }],
    ['a name that the edge chose', http, { assignedSubdomain: 'b' }, { ...DEFAULTS, preferred_subdomain: 'b' }],
    [
      'an id of this session comes with it',
      { ...http, hostHeader: 'app.test', localProtocol: 'h2c', capture: false },
      { tunnelId: 'tun_1' },
      { tunnel_id: 'tun_1', host_header: 'app.test', local_protocol: 'h2c', capture: false },
    ],
  ] as const)('%s', (_, spec, memory, wishes) => {
    expect(wishesOf(spec, memory)).toEqual(wishes);
  });

  it.each([
    ['http', '127.0.0.1', 3000, '127.0.0.1:3000'],
    ['http', 'app.test', 80, 'app.test'],
    ['https', 'app.test', 443, 'app.test'],
    ['https', 'app.test', 80, 'app.test:80'],
    ['http', '::1', 3000, '[::1]:3000'],
    ['tcp', 'db.test', 80, 'db.test:80'],
  ] as const)('%s at %s and %i is written %s', (protocol, host, port, text) => {
    expect(localAddress(protocol, host, port)).toBe(text);
  });
});

describe('a spec that cannot work', () => {
  it('h2c over TLS is a contradiction', () => {
    expect(() => checkTunnelSpec({ ...http, protocol: 'https', localProtocol: 'h2c' })).toThrow(/h2c/);
    expect(() => checkTunnelSpec({ ...http, localProtocol: 'h2c' })).not.toThrow();
  });

  it.each(['', 'a b', 'a\r\nX: y', 'ä', 'a'.repeat(256)])('a Host header %j', (hostHeader) => {
    expect(() => checkTunnelSpec({ ...http, hostHeader })).toThrow('the Host header must be');
  });

  it.each([
    ['no protocol', { protocol: undefined }, 'a tunnel is http, https, tcp'],
    ['an unknown protocol', { protocol: 'ftp' }, 'a tunnel is http, https, tcp'],
    ['no local port', { localPort: undefined }, 'the local port must be'],
    ['local port 0', { localPort: 0 }, 'the local port must be'],
    ['a local port as text', { localPort: '5432' }, 'the local port must be'],
    ['public port 0', { remotePort: 0 }, 'the public port must be'],
    ['public port 65536', { remotePort: 65_536 }, 'the public port must be'],
    ['a name that fits no frame', { name: 'a'.repeat(201) }, 'at most 100 characters'],
    ['a name that is no text', { name: 5 }, 'at most 100 characters'],
    ['an empty local host', { localHost: '' }, 'the local host must be'],
    ['a local host that fits no frame', { localHost: 'a'.repeat(300) }, 'the local host must be'],
    ['a subdomain that is no text', { protocol: 'http', subdomain: 5 }, 'RegisterTunnel.subdomain'],
    ['a capture that is neither', { protocol: 'http', capture: 'no' }, 'RegisterTunnel.capture'],
  ])('%s', (_, odd, reason) => {
    expect(() => checkTunnelSpec({ ...tcp, ...odd } as TunnelSpec)).toThrow(reason);
  });

  it('leaves to the edge what a frame can carry', () => {
    checkTunnelSpec({ ...tcp, name: '🔑'.repeat(100), remotePort: 65_535, localHost: 'a'.repeat(253) });
    checkTunnelSpec({ ...tcp, protocol: 'udp', name: '' });
  });

  it('a subdomain that fits no frame', () => {
    expect(() => checkTunnelSpec({ ...http, subdomain: 'a'.repeat(301) })).toThrow('more than 63');
    checkTunnelSpec({ ...http, subdomain: 'a', hostHeader: 'rewrite' });
  });
});
