import { describe, expect, it } from 'vitest';
import { isHashTooCheap, problemOfPassword } from './password-rules.ts';

describe('a password', () => {
  it('has at least 8 characters, counted by code points', () => {
    expect(problemOfPassword('1234567')).toBe('must have at least 8 characters');
    expect(problemOfPassword('12345678')).toBeNull();
    // Four of these are eight units of a JavaScript string.
    expect(problemOfPassword('😀'.repeat(4))).toBe('must have at least 8 characters');
    expect(problemOfPassword('😀'.repeat(8))).toBeNull();
  });

  it('is not trimmed', () => expect(problemOfPassword('        ')).toBeNull());

  it('has at most 1024 bytes of UTF-8', () => {
    expect(problemOfPassword('a'.repeat(1024))).toBeNull();
    expect(problemOfPassword('a'.repeat(1025))).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('é'.repeat(512))).toBeNull();
    expect(problemOfPassword(`${'é'.repeat(512)}a`)).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('€'.repeat(342))).toBe('must have at most 1024 bytes');
    expect(problemOfPassword('😀'.repeat(256))).toBeNull();
    expect(problemOfPassword('😀'.repeat(257))).toBe('must have at most 1024 bytes');
  });
});

it('a hash is made anew when any parameter has risen, never when one has fallen', () => {
  const wanted = { memoryKib: 19_456, passes: 2, lanes: 1 };
  expect(isHashTooCheap(wanted, wanted)).toBe(false);
  expect(isHashTooCheap({ ...wanted, memoryKib: 4096 }, wanted)).toBe(true);
  expect(isHashTooCheap({ ...wanted, passes: 1 }, wanted)).toBe(true);
  expect(isHashTooCheap({ ...wanted, lanes: 0 }, wanted)).toBe(true);
  expect(isHashTooCheap({ memoryKib: 65_536, passes: 3, lanes: 4 }, wanted)).toBe(false);
});
