import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { NetworkSet, problemOfNetwork } from './network-set.ts';

/** Whether a network contains an address according to the ipaddr library. */
const isIn = (network: string, address: string): boolean => {
  const whole = network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`;
  const [base, bits] = ipaddr.parseCIDR(whole);
  const parsed = ipaddr.process(address);
  const isMapped = base.kind() === 'ipv6' && (base as ipaddr.IPv6).isIPv4MappedAddress();
  if (isMapped) {
    return parsed.kind() === 'ipv4' && parsed.match([(base as ipaddr.IPv6).toIPv4Address(), bits - 96] as never);
  }
  return parsed.kind() === base.kind() && parsed.match([base, bits] as never);
};

/** Addresses close together, so that random networks often contain them. */
const v4 = fc
  .tuple(fc.constantFrom(0, 10, 192, 255), fc.nat(3), fc.nat(3), fc.nat(255))
  .map((parts) => parts.join('.'));
const group = fc.constantFrom('0', '1', 'ffff', 'db8', '2001', 'a', '8000');
const v6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((parts) => parts.join(':'));
const address = fc.oneof(
  v4,
  v6,
  v6.map((text) => ipaddr.IPv6.parse(text).toString()),
  v4.map((text) => `::ffff:${text}`),
  fc.ipV6(),
);
const network = fc.oneof(
  v4,
  v6,
  fc.tuple(v4, fc.nat(32)).map(([base, bits]) => `${base}/${bits}`),
  fc.tuple(v6, fc.nat(128)).map(([base, bits]) => `${base}/${bits}`),
  fc.tuple(v4, fc.integer({ min: 96, max: 128 })).map(([base, bits]) => `::ffff:${base}/${bits}`),
);

/** The library treats `::1.2.3.4` as `::ffff:1.2.3.4`, which is a different address, so the tests skip such texts. */
const isCompatible = (text: string): boolean => /^::\d+\./.test(text);

describe('a set of networks', () => {
  it('contains the addresses that at least one of its networks contains', () => {
    fc.assert(
      fc.property(fc.array(network, { maxLength: 8 }), address, (written, visitor) => {
        fc.pre(!isCompatible(visitor));
        const networks = written.filter((one) => problemOfNetwork(one) === null);
        expect(new NetworkSet(networks).has(visitor)).toBe(networks.some((one) => isIn(one, visitor)));
      }),
      { numRuns: 3000 },
    );
  });

  it('contains the first and the last address of a range, and neither neighbor', () => {
    const set = new NetworkSet(['10.0.0.0/8', '11.0.0.0/9', '192.0.2.7', '2001:db8::/32', '::1']);
    const inside = [
      '10.0.0.0',
      '11.127.255.255',
      '192.0.2.7',
      '2001:db8::',
      '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
      '::1',
    ];
    const outside = [
      '9.255.255.255',
      '11.128.0.0',
      '192.0.2.6',
      '192.0.2.8',
      '2001:db7:ffff::',
      '2001:db9::',
      '::',
      '::2',
    ];
    expect(inside.filter((one) => !set.has(one))).toEqual([]);
    expect(outside.filter((one) => set.has(one))).toEqual([]);
  });

  it('treats a v4-mapped address as IPv4, and matches IPv6 networks only with IPv6', () => {
    expect(new NetworkSet(['10.0.0.0/8']).has('::ffff:10.1.2.3')).toBe(true);
    expect(new NetworkSet(['10.0.0.0/8']).has('::ffff:a01:203')).toBe(true);
    expect(new NetworkSet(['::ffff:10.0.0.0/104']).has('10.1.2.3')).toBe(true);
    expect(new NetworkSet(['::/0']).has('10.1.2.3')).toBe(false);
    expect(new NetworkSet(['0.0.0.0/0']).has('::1')).toBe(false);
  });

  it.each([
    '',
    'x',
    '10.0.0',
    '10.0.0.256',
    '010.0.0.1',
    '1.2.3.4.5',
    ':::',
    '::g',
    '1:2:3:4:5:6:7',
    '10.0.0.1 ',
    '0x0a.0.0.1',
  ])('does not contain text that is not an address: %j', (text) => {
    expect(new NetworkSet(['0.0.0.0/0', '::/0']).has(text)).toBe(false);
  });

  it('ignores the zone of an IPv6 address', () => {
    expect(new NetworkSet(['fe80::/10']).has('fe80::1%eth0')).toBe(true);
    expect(new NetworkSet(['10.0.0.0/8']).has('10.0.0.1%eth0')).toBe(false);
  });
});

describe('a network in text form', () => {
  it.each(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::', '::/0', '0.0.0.0/0', '::ffff:10.0.0.0/104', '10.1.2.3/8'])(
    '%s is valid',
    (text) => {
      expect(problemOfNetwork(text)).toBeNull();
    },
  );

  it.each<[text: string, problem: string]>([
    ['10.0.0.0/33', 'the prefix of an IPv4 network is 0 to 32'],
    ['10.0.0.0/', 'the prefix of an IPv4 network is 0 to 32'],
    ['10.0.0.0/08', 'the prefix of an IPv4 network is 0 to 32'],
    ['10.0.0.0/-1', 'the prefix of an IPv4 network is 0 to 32'],
    ['10.0.0.0/255.0.0.0', 'the prefix of an IPv4 network is 0 to 32'],
    ['2001:db8::/129', 'the prefix of an IPv6 network is 0 to 128'],
    ['::ffff:10.0.0.0/8', 'the prefix of a v4-mapped network must be 96 to 128'],
    ['fe80::1%eth0', 'addresses cannot have a zone'],
    ...['', 'office', '10.0.0', '010.0.0.0/8', '10.0.0.0-10.0.0.9', '2001:db8:/32', '[::1]'].map(
      (text): [string, string] => [text, 'not an address or a network, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32'],
    ),
  ])('%s: %s', (text, problem) => {
    expect(problemOfNetwork(text)).toBe(problem);
  });

  it('is valid only if the ipaddr library can parse it', () => {
    fc.assert(
      fc.property(fc.oneof(network, fc.stringMatching(/^[0-9a-f:.]{0,20}(\/\d{1,3})?$/)), (text) => {
        fc.pre(!isCompatible(text));
        const isGood = problemOfNetwork(text) === null;
        const [base = '', bits] = text.split('/');
        const isAddress = base.includes(':') ? ipaddr.IPv6.isValid(base) : ipaddr.IPv4.isValidFourPartDecimal(base);
        if (isGood) expect(isAddress).toBe(true);
        if (isAddress && bits === undefined && !base.includes('.')) expect(isGood).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
