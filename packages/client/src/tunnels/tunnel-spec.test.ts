import { inspect } from 'node:util';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { localLabel, localText } from '../local/local-target.ts';
import {
  acceptTunnel,
  concealSecrets,
  localAddress,
  probeRulesOf,
  registrationFields,
  specOfTunnel,
  type TunnelOptions,
} from './tunnel-spec.ts';

const http = { protocol: 'http', localPort: 3000 } as const;
const tcp = { protocol: 'tcp', localPort: 5432 } as const;
const tls = { protocol: 'tls', localPort: 8443 } as const;
const udp = { protocol: 'udp', localPort: 53 } as const;
const DEFAULTS = { host_header: 'keep', local_protocol: 'http1', capture: true };

describe('the fields of a registration', () => {
  it.each([
    ['a tcp tunnel asks for any port', tcp, {}, {}],
    ['a port that was given', { ...tcp, remotePort: 1 }, { assignedPort: 2 }, { remote_port: 1 }],
    ['a port that it had', tcp, { assignedPort: 2 }, { preferred_port: 2 }],
    ['a udp tunnel asks for any port', udp, {}, {}],
    [
      'a udp tunnel with an idle time of its own; the header is no business of the edge',
      { ...udp, remotePort: 1, idleSecs: 5, proxyProtocol: 'v2' },
      { assignedPort: 2 },
      { remote_port: 1, idle_secs: 5 },
    ],
    ['a port that a udp tunnel had', udp, { assignedPort: 2 }, { preferred_port: 2 }],
    [
      'a tls tunnel asks for its host, whatever it had',
      { ...tls, subdomain: 'a' },
      { assignedPort: 2 },
      { subdomain: 'a' },
    ],
    [
      'a tls tunnel at a host of its own, with a header for its service',
      { ...tls, domain: 'db.example.net', proxyProtocol: 'v2' },
      {},
      { domain: 'db.example.net', proxy_protocol: 'v2' },
    ],
    ['an http tunnel has its defaults', http, {}, DEFAULTS],
    ['a name that was given', { ...http, subdomain: 'a' }, { assignedSubdomain: 'a' }, { ...DEFAULTS, subdomain: 'a' }],
    [
      'a host of its own, as names are compared: whatever it had',
      { ...http, domain: 'Shop.Bücher.example.' },
      { assignedSubdomain: 'b' },
      { ...DEFAULTS, domain: 'shop.xn--bcher-kva.example' },
    ],
    ['a name that the edge chose', http, { assignedSubdomain: 'b' }, { ...DEFAULTS, preferred_subdomain: 'b' }],
    [
      'an id of this session comes with it',
      { ...http, hostHeader: 'app.test', localProtocol: 'h2c', capture: false },
      { tunnelId: 'tun_1' },
      { tunnel_id: 'tun_1', host_header: 'app.test', local_protocol: 'h2c', capture: false },
    ],
  ] as const)('%s', (_, spec, previous, fields) => {
    expect(registrationFields(specOfTunnel(spec), previous)).toEqual(fields);
  });

  it.each([
    ['http', '127.0.0.1', 3000, '127.0.0.1:3000'],
    ['http', 'app.test', 80, 'app.test'],
    ['https', 'app.test', 443, 'app.test'],
    ['https', 'app.test', 80, 'app.test:80'],
    ['http', '::1', 3000, '[::1]:3000'],
    ['tcp', 'db.test', 80, 'db.test:80'],
  ] as const)('show the local address of %s at %s and %i as %s', (protocol, host, port, text) => {
    expect(localAddress({ proto: protocol, local_host: host, local_port: port })).toBe(text);
  });
});

describe('a local target', () => {
  const files = { dir: '/srv/site' };

  it.each([
    [{ local_port: 3000 }, '127.0.0.1:3000'],
    [{ local_host: '::1', local_port: 3000 }, '[::1]:3000'],
    [{ local_socket: '/run/app.sock' }, 'unix:/run/app.sock'],
    [{ files }, 'files:/srv/site'],
  ])('%j is displayed as %s', (local, text) => {
    expect(localText(local)).toBe(text);
  });

  it('without a name gets a name from its port, socket or folder', () => {
    const names = [{ local_port: 80 }, { local_socket: '/run/my app.sock' }, { files }, { files: { dir: '/' } }];
    expect(names.map(localLabel)).toEqual(['80', 'my-app', 'site', 'files']);
  });

  it('without a host is `localhost` in the Host header', () => {
    expect(localAddress({ proto: 'http', files })).toBe('localhost');
    expect(localAddress({ proto: 'http', local_socket: '/run/a' })).toBe('localhost');
  });

  it.each([
    [{ protocol: 'http', localPort: 1, localSocket: '/a' }, /one of/],
    [{ protocol: 'http', localSocket: '/a', files }, /one of/],
    [{ protocol: 'http' }, /local port/],
    [{ protocol: 'http', localHost: 'a', localSocket: '/a' }, /local host needs/],
    [{ protocol: 'tcp', localSocket: '' }, /1 to 107 bytes/],
    [{ protocol: 'tcp', localSocket: `/${'x'.repeat(107)}` }, /1 to 107 bytes/],
    [{ protocol: 'udp', localSocket: '/a' }, /is not an option of a udp tunnel/],
    [{ protocol: 'tcp', files }, /is not an option of a tcp tunnel/],
    [{ protocol: 'https', files }, /is not an option of a https tunnel/],
    [{ protocol: 'http', files: { dir: '' } }, /must be a path/],
    [{ protocol: 'http', files: { dir: 'a', spa: 'yes' } }, /true or false/],
    [{ protocol: 'http', files, localProtocol: 'h2c' }, /h2c/],
    [{ protocol: 'http', files, healthCheck: { type: 'tcp' } }, /no health check/],
  ] as [never, RegExp][])('%j is refused', (spec, words) => {
    expect(() => acceptTunnel(spec)).toThrow(words);
  });

  it.each([
    { protocol: 'http', files },
    { protocol: 'https', localSocket: '/run/app.sock', localTlsVerify: false },
    { protocol: 'tcp', localSocket: 'app.sock', healthCheck: { type: 'tcp' } },
  ] as const)('%j is accepted', (spec) => {
    expect(() => acceptTunnel(spec)).not.toThrow();
  });
});

describe('an invalid tunnel spec is refused', () => {
  it('h2c over TLS', () => {
    expect(() => acceptTunnel({ ...http, protocol: 'https', localProtocol: 'h2c' })).toThrow(/h2c/);
    expect(() => acceptTunnel({ ...http, localProtocol: 'h2c' })).not.toThrow();
  });

  it.each(['', 'a b', 'a\r\nX: y', 'ä', 'a'.repeat(261), '[::1', 'a/b', '@', 'a@b', 'x:y', ':80'])(
    'the Host header %j',
    (hostHeader) => {
      expect(() => acceptTunnel({ ...http, hostHeader })).toThrow('the Host header must be');
    },
  );

  it.each([
    ['no protocol', { protocol: undefined }, 'must be http, https, tcp'],
    ['an unknown protocol', { protocol: 'ftp' }, 'must be http, https, tcp'],
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
    ['a subdomain of tcp', { subdomain: 'a' }, '`subdomain` is not an option of a tcp tunnel'],
    ['a subdomain of udp', { protocol: 'udp', subdomain: 'a' }, '`subdomain` is not an option of a udp tunnel'],
    ['a public port of http', { protocol: 'http', remotePort: 5 }, '`remotePort` is not an option of a http tunnel'],
    ['a tls tunnel without a host', { protocol: 'tls' }, 'a tls tunnel needs a domain or a subdomain'],
    ['a tls tunnel with two', { ...tls, domain: 'a.b', subdomain: 'a' }, 'a domain or a subdomain, not both'],
    [
      'a public port of tls',
      { ...tls, subdomain: 'a', remotePort: 5 },
      '`remotePort` is not an option of a tls tunnel',
    ],
    ['a domain of tcp', { domain: 'a.b' }, '`domain` is not an option of a tcp tunnel'],
    ['http with two hosts', { protocol: 'http', domain: 'a.b', subdomain: 'a' }, 'a domain or a subdomain, not both'],
    ['a domain that fits no frame', { protocol: 'http', domain: 'a'.repeat(301) }, 'RegisterTunnel.domain'],
    [
      'a probe in clear of tls',
      { ...tls, subdomain: 'a', healthCheck: { type: 'http', path: '/' } },
      'tls tunnels support only health checks of type tcp',
    ],
    [
      'a login on tls',
      { ...tls, subdomain: 'a', policy: [{ respond: { status: 200 } }] },
      '`respond` is for http tunnels',
    ],
    ['an idle time of tcp', { idleSecs: 60 }, '`idleSecs` is not an option of a tcp tunnel'],
    ['a PROXY header of http', { protocol: 'http', proxyProtocol: 'v2' }, '`proxyProtocol` is not an option'],
    ['an idle time below 5 s', { protocol: 'udp', idleSecs: 4 }, 'from 5 to 3600'],
    ['an idle time over an hour', { protocol: 'udp', idleSecs: 3601 }, 'from 5 to 3600'],
    ['half a second', { protocol: 'udp', idleSecs: 5.5 }, 'from 5 to 3600'],
    ['PROXY v1 on udp', { protocol: 'udp', proxyProtocol: 'v1' }, 'udp tunnels support only PROXY protocol v2'],
  ])('%s', (_, odd, reason) => {
    expect(() => acceptTunnel({ ...tcp, ...odd } as TunnelOptions)).toThrow(reason);
  });

  it('unless only the edge can judge the value', () => {
    acceptTunnel({ ...tcp, name: '🔑'.repeat(100), remotePort: 65_535, localHost: 'a'.repeat(253) });
    acceptTunnel({ ...tcp, protocol: 'udp', name: '' });
  });

  it('a subdomain longer than 63 characters', () => {
    expect(() => acceptTunnel({ ...http, subdomain: 'a'.repeat(301) })).toThrow('longer than 63');
    acceptTunnel({ ...http, subdomain: 'a', hostHeader: 'rewrite' });
  });
});

const grouped = { ...http, group: 'web', groupKey: 'k' } as const;
const PATH = 'must begin with / and contain no spaces or control characters';

describe('an invalid group or health check is refused before the edge gets a request', () => {
  it.each<[string, TunnelOptions, string]>([
    ['a group without a key', { ...http, group: 'web' }, 'a group needs a group key'],
    ['a key without a group', { ...http, groupKey: 'k' }, 'a group key needs a group'],
    ['an empty key', { ...grouped, groupKey: new Secret('') }, 'the group key is empty'],
    ['an empty name', { ...grouped, group: '' }, 'it is empty'],
    ['a long name', { ...grouped, group: 'ä'.repeat(101) }, 'longer than 100'],
    ['a name with @', { ...grouped, group: 'a@b' }, '@ is not allowed'],
    ['a name of two lines', { ...grouped, group: 'a\nb' }, 'cannot be printed'],
    ['a group of udp', { ...grouped, protocol: 'udp' }, 'groups exist for http and tcp tunnels only'],
    ['a group of p2p', { ...grouped, protocol: 'p2p' }, 'groups exist for http and tcp tunnels only'],
    ['a group key of udp', { ...udp, groupKey: '' }, 'groups exist for http and tcp tunnels only'],
    [
      'a health check of udp',
      { ...udp, healthCheck: { type: 'tcp' } },
      'health_check exists for http and tcp tunnels only',
    ],
    ['http without a path', { ...http, healthCheck: { type: 'http' } }, 'needs a path'],
    ['a path without /', { ...http, healthCheck: { type: 'http', path: 'health' } }, PATH],
    ['a path with a space', { ...http, healthCheck: { type: 'http', path: '/a b' } }, PATH],
    ['a path with a line break', { ...http, healthCheck: { type: 'http', path: '/a\r\nX: y' } }, PATH],
    [
      'a path over the bound',
      { ...http, healthCheck: { type: 'http', path: `/${'😀'.repeat(2100)}` } },
      'health_check.path',
    ],
    ['an interval of 0', { ...http, healthCheck: { intervalSecs: 0 } }, 'health_check.interval_secs'],
    [
      'an endless deadline',
      { ...http, healthCheck: { timeoutSecs: Number.POSITIVE_INFINITY } },
      'health_check.timeout_secs',
    ],
    ['half a failure', { ...http, healthCheck: { maxFailed: 0.5 } }, 'health_check.max_failed'],
    ['another kind of URL', { ...http, healthCheck: { alertWebhook: 'ftp://secret.test/' } }, 'http or https URL'],
    ['half a URL', { ...http, healthCheck: { alertWebhook: 'https://' } }, 'http or https URL'],
    [
      'an endless URL',
      { ...http, healthCheck: { alertWebhook: `https://a.test/${'a'.repeat(2048)}` } },
      'alert_webhook',
    ],
  ])('%s', (_, spec, words) => {
    let refusal: unknown;
    try {
      acceptTunnel(spec);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: 'CLIENT_USAGE', message: expect.stringContaining(words) as string });
    expect(String(refusal)).not.toContain('secret.test');
  });

  it.each<[string, TunnelOptions]>([
    ['a group', grouped],
    ['one of https', { ...grouped, protocol: 'https' }],
    ['one of tcp with a port', { ...grouped, protocol: 'tcp', remotePort: 20_001 }],
    ['a health check without a group', { ...http, healthCheck: { type: 'tcp' } }],
    ['an alert alone', { ...http, healthCheck: { alertWebhook: 'http://127.0.0.1:9/' } }],
    ['fractions', { ...http, healthCheck: { type: 'http', path: '/', intervalSecs: 0.5, timeoutSecs: 0.25 } }],
  ])('but %s is accepted', (_, spec) => {
    expect(() => acceptTunnel(spec)).not.toThrow();
  });
});

describe('the group key', () => {
  it('is sent as the SHA-256 of its UTF-8 bytes, as sha256sum prints it', () => {
    // The hash below is the output of: printf %s 'schlüssel' | sha256sum
    const hash = 'ccec7a8e3e039f0b6b308a81f438e1d07a59c8c896b4f237d10c3eecb8375ef7';
    for (const groupKey of ['schlüssel', new Secret('schlüssel')]) {
      expect(registrationFields(specOfTunnel({ ...tcp, group: 'web', groupKey }), {})).toEqual({
        group: 'web',
        group_key_hash: hash,
      });
    }
  });

  it('is not kept in the tunnel spec', () => {
    const kept = concealSecrets(specOfTunnel({ ...grouped, groupKey: 'very secret' }));
    expect(inspect(kept, { depth: 9 }) + JSON.stringify(kept)).not.toContain('very secret');
  });
});

it('health probes use the defaults of the specification', () => {
  expect(probeRulesOf({ type: 'tcp' })).toEqual({
    type: 'tcp',
    interval_secs: 10,
    timeout_secs: 3,
    max_failed: 3,
    expect_2xx: true,
  });
  expect(probeRulesOf({ alert_webhook: 'https://a.test/' })).toBeNull();
  expect(probeRulesOf(undefined)).toBeNull();
});
