import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeControl, encodeControl } from './control-codec.ts';
import { CONTROL_TYPES, type ControlMessage } from './control-messages.ts';

type ValidVector = { name: string; text: string; message: ControlMessage; decode_only?: true };
type InvalidVector = { name: string; parts: { text: string; times: number }[]; code: string };

const read = <T>(file: string): T[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')) as T[];

describe('control vectors', () => {
  const vectors = read<ValidVector>('control.json');

  it.each(vectors)('$name: decodes', ({ text, message }) => {
    expect(decodeControl(text)).toEqual({ ok: true, message });
  });

  it.each(vectors.filter((vector) => !vector.decode_only))('$name: encodes to the letter', ({ text, message }) => {
    expect(encodeControl(message)).toBe(text);
  });

  it('has every control message', () => {
    expect([...new Set(vectors.map((vector) => vector.message.type))].sort()).toEqual([...CONTROL_TYPES].sort());
  });

  it.each(read<InvalidVector>('control-invalid.json'))('$name: is refused', ({ parts, code }) => {
    const decoded = decodeControl(parts.map(({ text, times }) => text.repeat(times)).join(''));
    expect(decoded).toMatchObject({ ok: false, fault: { code } });
  });
});
