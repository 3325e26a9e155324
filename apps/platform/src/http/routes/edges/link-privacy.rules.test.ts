import { TrustedProxies } from '@tunnel/rules/net';
import { describe, expect, it } from 'vitest';
import { isPrivateLink, type LinkFacts } from './link-privacy.rules.ts';

const proxies = new TrustedProxies(['10.0.0.0/8', '127.0.0.1']);
const isPrivate = (facts: Partial<LinkFacts>): boolean =>
  isPrivateLink(
    { peer: '203.0.113.7', isTls: false, forwardedFor: undefined, forwardedProto: undefined, ...facts },
    proxies,
  );

describe('a direct edge link', () => {
  it('is private over TLS and on loopback', () => {
    expect(isPrivate({ isTls: true })).toBe(true);
    for (const peer of ['127.0.0.1', '127.3.2.1', '::1', '::ffff:127.0.0.1']) expect(isPrivate({ peer })).toBe(true);
  });

  it('is not private without TLS from another machine, even in a private network', () => {
    for (const peer of ['203.0.113.7', '192.168.1.2', '::ffff:203.0.113.7', '2001:db8::1', ''])
      expect(isPrivate({ peer })).toBe(false);
  });
});

describe('an edge link behind a proxy', () => {
  it('is private if a trusted or local proxy reports https for all hops', () => {
    for (const peer of ['10.1.2.3', '127.0.0.1', '::1']) {
      expect(isPrivate({ peer, forwardedFor: '203.0.113.7', forwardedProto: 'https' })).toBe(true);
      expect(isPrivate({ peer, forwardedFor: '203.0.113.7', forwardedProto: 'HTTPS, https' })).toBe(true);
      expect(isPrivate({ peer, forwardedFor: '203.0.113.7', forwardedProto: 'http' })).toBe(false);
      expect(isPrivate({ peer, forwardedFor: '203.0.113.7', forwardedProto: 'https, http' })).toBe(false);
    }
  });

  it('is not private if the proxy is untrusted or reports no protocol', () => {
    expect(isPrivate({ forwardedProto: 'https' })).toBe(false);
    expect(isPrivate({ peer: '10.1.2.3' })).toBe(false);
    expect(isPrivate({ peer: '10.1.2.3', isTls: true })).toBe(false);
    for (const peer of ['10.1.2.3', '127.0.0.1', '::1']) {
      expect(isPrivate({ peer, forwardedFor: '203.0.113.7' })).toBe(false);
    }
  });

  it('is not private if any hop was unencrypted, even with TLS on the last hop', () => {
    expect(isPrivate({ isTls: true, forwardedProto: 'http' })).toBe(false);
    expect(isPrivate({ isTls: true, forwardedFor: '203.0.113.9' })).toBe(false);
  });

  it('is private if every hop is on this machine', () => {
    expect(isPrivate({ peer: '127.0.0.1', forwardedFor: '127.0.0.1' })).toBe(true);
    expect(isPrivate({ peer: '127.0.0.1', forwardedFor: '203.0.113.9, 127.0.0.1' })).toBe(false);
  });
});
