import { describe, expect, it } from 'vitest';
import { isAddress, normalizeAddress } from './email-address.ts';

describe('an e-mail address', () => {
  it('is compared trimmed and in lower case', () => {
    expect(normalizeAddress('  Ann.Lee@Example.COM\n')).toBe('ann.lee@example.com');
  });

  it('keeps letters of other scripts: a sign that only becomes a k is no k', () => {
    expect(normalizeAddress('\u212aate@example.com')).toBe('\u212aate@example.com');
    expect(isAddress(normalizeAddress('\u212aate@example.com'))).toBe(false);
  });

  it.each([
    'a@b',
    'ann@localhost',
    'ann.lee+tag@mail.example.com',
    "o'neil_{x}@example.com",
    `${'a'.repeat(64)}@example.com`,
    'a@xn--bcher-kva.example',
  ])('may be %s', (address) => expect(isAddress(address)).toBe(true));

  it.each([
    '',
    'ann',
    '@example.com',
    'ann@',
    'ann@@example.com',
    'ann@b@example.com',
    'ann lee@example.com',
    '.ann@example.com',
    'ann.@example.com',
    'a..b@example.com',
    '"ann"@example.com',
    'ann@-example.com',
    'ann@example..com',
    'ann@example.com.',
    'ann@[127.0.0.1]',
    'ann@example.com\r\nbcc:eve@example.com',
    'ann@example.com,eve@example.com',
    '<ann@example.com>',
    'änn@example.com',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(64)}.com`,
    `a@${'b.'.repeat(127)}com`,
  ])('is not %j', (address) => expect(isAddress(address)).toBe(false));

  it('is judged in time that grows with its length alone', () => {
    expect(isAddress(`${'a.'.repeat(30_000)}@example.com`)).toBe(false);
    expect(isAddress(`a@${'b-'.repeat(120)}`)).toBe(false);
  });
});
