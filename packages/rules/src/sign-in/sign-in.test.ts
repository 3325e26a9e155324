import { describe, expect, it } from 'vitest';
import {
  decideRefresh,
  isAddress,
  isHashTooCheap,
  judgeLogin,
  type LoginFacts,
  normalizeAddress,
  problemOfPassword,
  type ShownToken,
} from './sign-in.ts';

describe('an e-mail address', () => {
  it('is compared trimmed and in lower case', () => {
    expect(normalizeAddress('  Ann.Lee@Example.COM\n')).toBe('ann.lee@example.com');
  });

  it('with the Kelvin sign keeps it, instead of turning it into a k', () => {
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
  ])('is valid: %s', (address) => expect(isAddress(address)).toBe(true));

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
  ])('is invalid: %j', (address) => expect(isAddress(address)).toBe(false));

  it('is checked in time linear in its length', () => {
    expect(isAddress(`${'a.'.repeat(30_000)}@example.com`)).toBe(false);
    expect(isAddress(`a@${'b-'.repeat(120)}`)).toBe(false);
  });
});

describe('a password', () => {
  it('needs at least 8 characters, counted by code points', () => {
    expect(problemOfPassword('1234567')).toBe('must have at least 8 characters');
    expect(problemOfPassword('12345678')).toBeNull();
    // Four of these characters are eight UTF-16 code units of a JavaScript string.
    expect(problemOfPassword('😀'.repeat(4))).toBe('must have at least 8 characters');
    expect(problemOfPassword('😀'.repeat(8))).toBeNull();
  });

  it('is not trimmed', () => expect(problemOfPassword('        ')).toBeNull());

  it('may have at most 1024 bytes of UTF-8', () => {
    expect(problemOfPassword('a'.repeat(1024))).toBeNull();
    expect(problemOfPassword('a'.repeat(1025))).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('é'.repeat(512))).toBeNull();
    expect(problemOfPassword(`${'é'.repeat(512)}a`)).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('€'.repeat(342))).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('😀'.repeat(256))).toBeNull();
    expect(problemOfPassword('😀'.repeat(257))).toBe('must have at most 1024 bytes');
  });
});

it('a password hash is recomputed when any parameter has risen, never when a parameter has fallen', () => {
  const wanted = { memoryKib: 19_456, passes: 2, lanes: 1 };
  expect(isHashTooCheap(wanted, wanted)).toBe(false);
  expect(isHashTooCheap({ ...wanted, memoryKib: 4096 }, wanted)).toBe(true);
  expect(isHashTooCheap({ ...wanted, passes: 1 }, wanted)).toBe(true);
  expect(isHashTooCheap({ ...wanted, lanes: 0 }, wanted)).toBe(true);
  expect(isHashTooCheap({ memoryKib: 65_536, passes: 3, lanes: 4 }, wanted)).toBe(false);
});

describe('a sign-in with a password', () => {
  const good: LoginFacts = { external: false, passwordMatches: true, status: 'active', emailVerified: true };
  const judge = (changes: Partial<LoginFacts>) => judgeLogin({ ...good, ...changes });

  it('succeeds for a verified, active account with the right password', () => expect(judge({})).toBe('welcome'));

  it('gets the same answer for an unknown address and for a wrong password', () => {
    expect(judgeLogin(null)).toBe('wrong');
    expect(judge({ passwordMatches: false })).toBe('wrong');
  });

  it('reveals the state of an account only after the right password', () => {
    expect(judge({ status: 'suspended' })).toBe('suspended');
    expect(judge({ emailVerified: false })).toBe('unverified');
    expect(judge({ status: 'suspended', emailVerified: false })).toBe('suspended');
    expect(judge({ status: 'suspended', passwordMatches: false })).toBe('wrong');
    expect(judge({ emailVerified: false, passwordMatches: false })).toBe('wrong');
  });

  it('is redirected to the external provider for an external account, whatever the password', () => {
    expect(judge({ external: true })).toBe('external');
    expect(judge({ external: true, passwordMatches: false, status: 'suspended' })).toBe('external');
  });
});

describe('a refresh token', () => {
  const rules = { graceMs: 10_000, graceUses: 5 };
  const fresh: ShownToken = {
    expiresAt: 1_000_000,
    rotatedAt: null,
    graceUses: 0,
    familyRevoked: false,
    userStatus: 'active',
  };
  const decide = (changes: Partial<ShownToken>, now: number) => decideRefresh({ ...fresh, ...changes }, now, rules);

  it('is rotated at its first use, until it expires', () => {
    expect(decide({}, 0)).toBe('rotate');
    expect(decide({}, 999_999)).toBe('rotate');
    expect(decide({}, 1_000_000)).toBe('invalid');
    expect(decideRefresh(null, 0, rules)).toBe('invalid');
  });

  it('can be used again for 10 s after the rotation', () => {
    expect(decide({ rotatedAt: 5000 }, 5000)).toBe('rotate-again');
    expect(decide({ rotatedAt: 5000 }, 15_000)).toBe('rotate-again');
    expect(decide({ rotatedAt: 5000 }, 15_001)).toBe('reuse');
  });

  it('can be used again five times, not six', () => {
    expect(decide({ rotatedAt: 0, graceUses: 4 }, 1)).toBe('rotate-again');
    expect(decide({ rotatedAt: 0, graceUses: 5 }, 1)).toBe('reuse');
  });

  it('is invalid once its family is revoked', () => {
    expect(decide({ familyRevoked: true }, 0)).toBe('invalid');
    expect(decide({ familyRevoked: true, rotatedAt: 0 }, 1)).toBe('invalid');
  });

  it('of a suspended account is answered as suspended, even if its family is revoked', () => {
    expect(decide({ userStatus: 'suspended', familyRevoked: true }, 0)).toBe('suspended');
    expect(decide({ userStatus: 'suspended' }, 1_000_000)).toBe('invalid');
  });
});
