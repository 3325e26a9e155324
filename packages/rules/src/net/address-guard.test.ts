import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AddressClass,
  type AlertSurroundings,
  classOfAddress,
  decidePrivateAlerts,
  problemOfAddress,
} from './address-guard.ts';

const TABLE: Readonly<Record<AddressClass, readonly string[]>> = {
  public: [
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255'],
    ...['100.63.255.255', '100.128.0.0', '169.253.255.255', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
    ...['126.255.255.255', '128.0.0.0', '168.63.129.15', '168.63.129.17'],
    ...['2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:80b::200e', '2600::', '2001:200::1'],
    // IPv6 addresses that contain a public IPv4 address: mapped, NAT64, 6to4 and Teredo.
    ...['::ffff:8.8.8.8', '::FFFF:808:808', '64:ff9b::8.8.8.8', '64:ff9b::808:808', '2002:808:808::1'],
    '2001:0:808:808::f7f7:f7f7',
  ],
  loopback: [
    ...['127.0.0.1', '127.0.0.0', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
    ...['0:0:0:0:0:ffff:127.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '2002:7f00:1:a:b:c:d:e'],
    // Teredo addresses with a loopback address as client or as server.
    ...['2001:0:808:808::80ff:fffe', '2001:0:7f00:1::f7f7:f7f7'],
  ],
  private: [
    ...['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
    ...['::ffff:10.0.0.1', '::ffff:c0a8:1', '64:ff9b::10.0.0.1', '2002:a00:1::1', '2002:c0a8:101::1'],
  ],
  'link-local': ['169.254.0.0', '169.254.169.253', '169.254.255.255', 'fe80::1', 'febf::1', '::ffff:169.254.1.1'],
  'carrier-grade-nat': ['100.64.0.0', '100.127.255.255', '100.100.100.201', '::ffff:100.64.0.1'],
  'unique-local': ['fc00::', 'fd00::1', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fd00:ec2::253'],
  metadata: [
    ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.42.42', '169.254.0.23'],
    ...['100.100.100.200', '168.63.129.16', 'fd00:ec2::254', 'FD00:EC2:0::0:254', 'fd00:ec2::23', 'fd20:ce::254'],
    ...['fd00:42::42', 'fe80::a9fe:a9fe', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '64:ff9b::a9fe:a9fe'],
    ...['2002:a9fe:a9fe::1', '::ffff:100.100.100.200', '2001:0:808:808::5601:5601'],
  ],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1', '::ffff:224.0.0.1'],
  broadcast: ['255.255.255.255', '::ffff:255.255.255.255'],
  unspecified: [
    '0.0.0.0',
    '0.0.0.1',
    '0.255.255.255',
    '::',
    '0:0:0:0:0:0:0:0',
    '::ffff:0.0.0.0',
    '64:ff9b::',
    '2002::1',
  ],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.255', '2001:db8::1', '3fff::1', '3fff:fff::1'],
  benchmarking: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  reserved: [
    ...['240.0.0.1', '255.255.255.254', '192.0.0.1', '192.0.0.192', '192.88.99.1', '192.175.48.1', '192.52.193.1'],
    // IPv4-compatible and IPv4-translated addresses, local NAT64, discard, site-local, segment routing, ORCHID and unassigned ranges.
    ...['::8.8.8.8', '::127.0.0.1', '::7f00:1', '::2', '::ffff:0:8.8.8.8', '64:ff9b:1::8.8.8.8', '100::1', 'fec0::1'],
    ...['5f00::1', '2001:20::1', '2001:10::1', '2001:1::1', '4000::1', '1000::1', 'e000::1', '200::1', '64:ff9c::1'],
  ],
  zoned: ['fe80::1%eth0', '::1%lo', '2606:4700::1111%1', 'fe80::1%', '%', '127.0.0.1%lo'],
  invalid: [
    ...['', ' ', 'localhost', 'example.com', '1.2.3', '1', '2130706433', '0x7f.1', '0x7f000001', '0177.0.0.1', '127.1'],
    ...['010.0.0.1', '127.0.0.01', '1.2.3.256', '1.2.3.4.5', ' 127.0.0.1', '127.0.0.1 ', '127.0.0.1\n', '１.1.1.1'],
    ...[
      '[::1]',
      ':::',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7:1.2.3.4',
      '::g',
      '::ffff:010.0.0.1',
      '::ffff:0x7f.0.0.1',
      '8.8.8.8/32',
      '::1/128',
    ],
  ],
};

describe('the class of an address', () => {
  for (const [name, addresses] of Object.entries(TABLE)) {
    it.each(addresses)(`${name}: %s`, (address) => expect(classOfAddress(address)).toBe(name));
  }

  it('is the same for an IPv4 address and for an IPv6 address that contains it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(classOfAddress(`::ffff:${address}`)).toBe(classOfAddress(address));
        expect(classOfAddress(`64:ff9b::${address}`)).toBe(classOfAddress(address));
      }),
    );
  });

  it('is public only in 2000::/3, unless an IPv4 address is inside', () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const first = group.filter((value) => value >> 13 !== 1 && value !== 0 && value !== 0x64);
    fc.assert(
      fc.property(first, fc.array(group, { minLength: 7, maxLength: 7 }), (head, rest) => {
        expect(classOfAddress([head, ...rest].map((value) => value.toString(16)).join(':'))).not.toBe('public');
      }),
    );
  });
});

describe('sending to an address', () => {
  const passing = (allowPrivate: boolean): string[] =>
    Object.entries(TABLE)
      .filter(([, addresses]) => addresses.every((address) => problemOfAddress(address, allowPrivate) === null))
      .map(([name]) => name);
  const refused = (allowPrivate: boolean): string[] =>
    Object.entries(TABLE)
      .filter(([, addresses]) => addresses.every((address) => problemOfAddress(address, allowPrivate) !== null))
      .map(([name]) => name);

  it('is allowed only for public addresses by default', () => {
    expect(passing(false)).toEqual(['public']);
    expect(refused(false)).toHaveLength(Object.keys(TABLE).length - 1);
  });

  it('is allowed for private addresses where the setting permits it, never for metadata or multicast addresses', () => {
    const allowed = ['public', 'loopback', 'private', 'link-local', 'carrier-grade-nat', 'unique-local'];
    expect(passing(true)).toEqual(allowed);
    expect(refused(true)).toEqual(Object.keys(TABLE).filter((name) => !allowed.includes(name)));
  });

  it('is refused with the reason in words', () => {
    expect(problemOfAddress('10.0.0.5', false)).toBe('a private address');
    expect(problemOfAddress('::ffff:a9fe:a9fe', true)).toBe('a cloud metadata address');
  });
});

describe('alerts to private addresses', () => {
  const HOME = { host: '127.0.0.1', domain: 'localhost', publicHost: 'localhost', trustedProxies: [] };
  const may = (setting: 'auto' | boolean, around: Partial<AlertSurroundings> = {}): boolean =>
    decidePrivateAlerts(setting, { ...HOME, ...around }).allowed;

  it.each(['127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST.'])(
    'on an edge that listens on %s only, "auto" allows private alert URLs',
    (host) => {
      expect([may('auto', { host }), may(false, { host })]).toEqual([true, false]);
    },
  );

  it.each([
    ...['127.0.0.1', '[::1]', 'localhost'].map((publicHost) => [{ publicHost }, true] as const),
    ...['console.example.net', '10.0.0.1', '0.0.0.0', 'localhost.example'].map(
      (publicHost) => [{ publicHost }, false] as const,
    ),
    ...['tunnels.example', 'dev.localhost', 'localhost.example'].map((domain) => [{ domain }, false] as const),
    ...['0.0.0.0', '::', '', '10.0.0.1', '192.0.2.7', 'fe80::1', 'edge.example', '127.0.0.1.example'].map(
      (host) => [{ host }, false] as const,
    ),
    [{ trustedProxies: ['127.0.0.1'] }, false],
  ] as const)('"auto" with %j: %s; true and false do not depend on the surroundings', (around, allowed) => {
    expect([may('auto', around), may(true, around), may(false, around)]).toEqual([allowed, true, false]);
  });

  it('are decided with the reason', () => {
    const { because } = decidePrivateAlerts('auto', { ...HOME, domain: 'tunnels.example' });
    expect(because).toBe('[server] domain is tunnels.example');
    expect(decidePrivateAlerts(true, HOME)).toEqual({ allowed: true, because: 'alert_allow_private is true' });
  });
});
