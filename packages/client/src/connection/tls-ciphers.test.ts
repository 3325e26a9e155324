import { DEFAULT_CIPHERS } from 'node:tls';
import { expect, it } from 'vitest';
import { chachaFirst, hasAesInstructions } from './tls-ciphers.ts';

it.each([
  ['x86', 'processor\t: 0\nflags\t\t: fpu sse2 aes avx\n', true],
  ['an old x86', 'processor\t: 0\nflags\t\t: fpu sse2 avx\n', false],
  ['vaes alone, which is no aes', 'flags\t\t: fpu vaes\n', false],
  ['ARM', 'processor\t: 0\nFeatures\t: fp asimd aes pmull sha1\n', true],
  ['a small board', 'processor\t: 0\nFeatures\t: fp asimd evtstrm crc32 cpuid\n', false],
  ['one that does not say', 'processor : 0\nmodel : 1\n', true],
  ['another system', null, true],
])('CPU detection finds AES instructions: %s', (_name, cpuInfo, expected) => {
  expect(hasAesInstructions(cpuInfo)).toBe(expected);
});

it('chachaFirst puts ChaCha20 first and keeps every other cipher', () => {
  const mine = chachaFirst(DEFAULT_CIPHERS).split(':');
  expect(mine[0]).toBe('TLS_CHACHA20_POLY1305_SHA256');
  expect([...mine].sort()).toEqual(DEFAULT_CIPHERS.split(':').sort());
});
