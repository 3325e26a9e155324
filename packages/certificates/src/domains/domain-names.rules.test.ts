import { domainToASCII } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readDomainName } from './domain-names.rules.ts';

const FACTS = { toAscii: domainToASCII, operatorsHosts: ['tunnels.example.com', 'console.example.net'] };

const read = (text: string) => {
  const reading = readDomainName(text, FACTS);
  return reading.kind === 'name' ? reading.domain : reading.fault.message;
};

describe('the name of a custom domain', () => {
  it('is stored in A-label form, in lower case and without a trailing dot', () => {
    expect(read('shop.example.org')).toEqual({ name: 'shop.example.org', host: 'shop.example.org', wildcard: false });
    expect(read('Shop.Example.ORG.')).toMatchObject({ name: 'shop.example.org' });
    expect(read('Bücher.example')).toMatchObject({ name: 'xn--bcher-kva.example' });
    expect(read('bücher。example')).toMatchObject({ name: 'xn--bcher-kva.example' });
    expect(read('xn--bcher-kva.example')).toMatchObject({ name: 'xn--bcher-kva.example' });
    expect(read('example.com')).toMatchObject({ host: 'example.com' });
    expect(read('3com.com')).toMatchObject({ host: '3com.com' });
  });

  it('is not judged by the decoded letters of its xn-- labels, so that every Node.js version agrees', () => {
    const noLetters = { ...FACTS, toAscii: () => '' };
    for (const name of ['xn--bcher-kva.example', 'xn--99999999999.example', 'xn--a.example', 'a.xn--zzzz-zzzz']) {
      expect(readDomainName(name, noLetters)).toMatchObject({ kind: 'name', domain: { name } });
    }
    expect(readDomainName('bücher.example', noLetters)).toMatchObject({
      kind: 'refused',
      reason: 'it is not a host name',
    });
  });

  it('can be a wildcard for one label', () => {
    expect(read('*.Shop.example.org')).toEqual({
      name: '*.shop.example.org',
      host: 'shop.example.org',
      wildcard: true,
    });
    for (const odd of ['*.*.example.org', 'a.*.example.org', '*shop.example.org', '*', '*.', '*.org']) {
      expect(typeof read(odd), odd).toBe('string');
    }
  });

  it('has 2 to 127 labels and at most 253 characters', () => {
    const longest = `${'a.'.repeat(126)}b`;
    expect(longest).toHaveLength(253);
    expect(read(longest)).toMatchObject({ host: longest });
    expect(read(`${longest}.`)).toMatchObject({ host: longest });
    expect(read(`a${longest}`)).toContain('longer than 253 characters');
    expect(read(`${'x'.repeat(63)}.example`)).toMatchObject({ host: `${'x'.repeat(63)}.example` });
    expect(read(`${'x'.repeat(64)}.example`)).toContain('it is not a host name');
    expect(read('localhost')).toBe("domain 'localhost' is not valid: a domain needs at least two labels");
    expect(read('x'.repeat(100_000))).toContain('it is not a host name');
  });

  it('cannot be an address, in any notation that browsers accept', () => {
    for (const address of ['127.0.0.1', '1.2.3', '１２７.0.0.1', '127.0.0.1.', 'a.1', '0x7f.1', 'a.0x1', 'a.0X']) {
      expect(read(address), address).toContain('it is an address');
    }
    for (const address of ['[::1]', '::1']) expect(read(address), address).toContain('is not a host name');
  });

  it('cannot be equal to or below a host of the operator', () => {
    for (const own of [
      'tunnels.example.com',
      'shop.Tunnels.example.com',
      '*.tunnels.example.com',
      'console.example.net.',
    ]) {
      expect(read(own), own).toContain('belong to this server; reserve a subdomain instead');
    }
    expect(read('my-tunnels.example.com')).toMatchObject({ host: 'my-tunnels.example.com' });
    expect(read('example.com')).toMatchObject({ host: 'example.com' });
  });

  it('cannot be a URL, a path or text with a line break', () => {
    const odd = [
      ...[
        '',
        '.',
        '..',
        'a..b',
        '.a.b',
        '-a.b',
        'a-.b',
        'a_b.c',
        'a b.c',
        'a\nb.c',
        'a%41.c',
        'a/b.c',
        'a@b.c',
        'a.b:80',
      ],
      ...['http://a.b', 'a.b?c', 'a.b#c', 'a\u0000.b', 'a.b..', '\u202ea.b'],
    ];
    for (const text of odd) {
      const said = read(text);
      expect(typeof said, JSON.stringify(text)).toBe('string');
      expect(said).toMatch(/^[^\p{Cc}]*$/u);
    }
  });

  it('is read again as the same domain, for any accepted input', () => {
    const text = fc.oneof(fc.domain(), fc.string({ unit: 'grapheme', maxLength: 40 }), fc.webUrl());
    fc.assert(
      fc.property(text, fc.boolean(), (name, wildcard) => {
        const reading = readDomainName(wildcard ? `*.${name}` : name, FACTS);
        if (reading.kind === 'refused') return;
        expect(reading.domain.host).toMatch(/^(?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63}$/);
        expect(readDomainName(reading.domain.name, FACTS)).toEqual(reading);
      }),
      { numRuns: 200 },
    );
  });
});
