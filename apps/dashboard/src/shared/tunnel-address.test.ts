import { expect, it } from 'vitest';
import { addressOf, hasAddress, kindOf, originText, protocolText } from './tunnel-address.ts';

const entry = { protocol: 'http', label: 'web', tunnel_id: 'tun_1' } as const;

it.each([
  [{ ...entry, public_url: 'https://web.example.com' }, 'https://web.example.com', 'https://web.example.com'],
  [{ ...entry, protocol: 'tcp', label: '20000', public_url: 'tcp://example.com:20000' }, 'example.com:20000', null],
  [{ ...entry, protocol: 'udp', label: '20001', public_url: 'udp://[::1]:20001' }, '[::1]:20001', null],
  [{ ...entry, protocol: 'p2p', label: 'office', public_url: 'p2p://office' }, 'office', null],
  [entry, 'web', null],
  [{ ...entry, label: '' }, 'tun_1', null],
  [{ ...entry, public_url: 'javascript:alert(1)' }, 'javascript:alert(1)', null],
] as const)('the address of %j is shown as %s', (tunnel, text, href) => {
  expect(addressOf(tunnel)).toEqual({ text, href });
});

it('the origin of a tunnel shows its known name and computer', () => {
  expect(originText({ name: 'web', client_name: 'laptop' })).toBe('web on laptop');
  expect([originText({ name: 'web' }), originText({ client_name: 'laptop' }), originText({})]).toEqual([
    ...['web', 'laptop', ''],
  ]);
  expect([protocolText('http'), protocolText('p2p')]).toEqual(['HTTP', 'P2P']);
  expect(hasAddress({ protocol: 'p2p', public_url: 'p2p://a' })).toBe(false);
});

it('a tls tunnel is recognized by the scheme of its URL', () => {
  expect(kindOf({ protocol: 'tcp', public_url: 'tls://vault.example.com:443' })).toBe('tls');
  expect(kindOf({ protocol: 'tcp', public_url: 'tcp://example.com:20000' })).toBe('tcp');
  expect([kindOf({ protocol: 'tcp' }), kindOf({ protocol: 'http', public_url: 'tls://x' })]).toEqual(['tcp', 'http']);
});
