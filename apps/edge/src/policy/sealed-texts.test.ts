import { Secret } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { type SealBinding, SealedTexts } from './sealed-texts.ts';

const A = new Secret('a'.repeat(43));
const B = new Secret('b'.repeat(43));
const HERE: SealBinding = {
  purpose: 'login',
  parts: ['shop.example.com', 'account 1', 'https://login.example', 'edge'],
};

const changed = (parts: Readonly<Record<number, string>>): SealBinding => ({
  ...HERE,
  parts: HERE.parts.map((part, at) => parts[at] ?? part),
});

it('a sealed text is unreadable and opens under the same binding', () => {
  const seals = new SealedTexts([A]);
  const sealed = seals.seal(HERE, 'ann@example.com');
  expect(sealed).toMatch(/^[\w-]+$/);
  expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('ann');
  expect(seals.seal(HERE, 'ann@example.com')).not.toBe(sealed);
  expect(seals.open(HERE, sealed)).toBe('ann@example.com');
  expect(new SealedTexts([A]).open(HERE, sealed)).toBe('ann@example.com');
});

it.each([
  ['another host', changed({ 0: 'other.example.com' })],
  ['another owner: a name that has changed hands', changed({ 1: 'account 2' })],
  ['another issuer', changed({ 2: 'https://other.example' })],
  ['another client', changed({ 3: 'other' })],
  ['another purpose', { ...HERE, purpose: 'pending' }],
  ['parts that are only spelt the same together', { ...HERE, parts: [HERE.parts.join('","')] }],
] as [string, SealBinding][])('a sealed text does not open for %s', (_what, binding) => {
  const seals = new SealedTexts([A]);
  expect(seals.open(binding, seals.seal(HERE, 'x'))).toBeNull();
});

it('a sealed text with any changed character does not open', () => {
  const seals = new SealedTexts([A]);
  const sealed = seals.seal(HERE, 'ann', 'beside');
  for (let at = 0; at < sealed.length - 1; at += 1) {
    const other = sealed[at] === 'A' ? 'B' : 'A';
    expect(seals.open(HERE, sealed.slice(0, at) + other + sealed.slice(at + 1), 'beside')).toBeNull();
  }
  for (const text of ['', 'x', sealed.slice(0, 20), `${sealed}=`, '%', 'é', 'A'.repeat(5000)]) {
    expect(seals.open(HERE, text, 'beside')).toBeNull();
  }
  expect(seals.open(HERE, sealed, 'other')).toBeNull();
  expect(seals.open(HERE, sealed, 'beside')).toBe('ann');
});

it('a sealed text has exactly one spelling', () => {
  const seals = new SealedTexts([new Secret('k'.repeat(43))]);
  const binding = { purpose: 'login', parts: ['shop.example.com'] } as const;
  // Texts of every length modulo 3, so that base64 leaves different numbers of unused bits.
  for (const text of ['a', 'ab', 'abc']) {
    const sealed = seals.seal(binding, text);
    expect(seals.open(binding, sealed)).toBe(text);
    const others = [...'AQgwx-_'].flatMap((one) => [`${sealed}${one}`, `${sealed.slice(0, -1)}${one}`]);
    for (const other of others) if (other !== sealed) expect(seals.open(binding, other)).toBeNull();
  }
});

it('rotated secrets keep sealed texts valid until the old secret is removed', () => {
  const sealed = new SealedTexts([A]).seal(HERE, 'ann');
  const rotated = new SealedTexts([B, A]);
  expect(rotated.open(HERE, sealed)).toBe('ann');
  const newer = rotated.seal(HERE, 'bob');
  expect(new SealedTexts([A]).open(HERE, newer)).toBeNull();
  expect(new SealedTexts([B]).open(HERE, newer)).toBe('bob');
  expect(new SealedTexts([B]).open(HERE, sealed)).toBeNull();
});

it('sealing without a secret fails', () => {
  expect(() => new SealedTexts([])).toThrow('no login secret');
});
