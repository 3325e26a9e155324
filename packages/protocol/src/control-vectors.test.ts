import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeControl, encodeControl } from './control-codec.ts';
import { CONTROL_TYPES, type ControlMessage } from './control-messages.ts';

type ValidVector = { name: string; text: string; message: ControlMessage; decode_only?: true };
type InvalidVector = { name: string; parts: { text: string; times: number }[]; code: string };

const textOf = (file: string): string => readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8');
const read = <T>(file: string): T[] => JSON.parse(textOf(file)) as T[];

/** Hashes of the version 1 vectors as published. Later additions have separate vector files. */
const VERSION_1 = {
  'control.json': 'd9c67ab840a57978c8307d2933eb8c7353cecd01ff1c0a053816236d7432c2b6',
  'control-invalid.json': '919cb0b063019e3af08bd6fc9806cd002f1636df531954c52b8b12e373974504',
  'frames.json': '82767a5a20af2a8ac8c2071dfa87bfa84e6d527058263d508143e1569b454672',
  'frames-invalid.json': '2862c465f4fa99d44b1fc6f1e225af8572c07c488ad9ecc8d04cb47f6ccbda65',
  'sequences.json': '518c3402df7d5baf1ff8a4349366a19c0135c796bc52a27fbeab89e9c42cf876',
};

describe('the published vectors of version 1', () => {
  it.each(Object.entries(VERSION_1))('are unchanged to the byte: %s', (file, sha256) => {
    expect(createHash('sha256').update(textOf(file)).digest('hex')).toBe(sha256);
  });
});

describe('control vectors', () => {
  const vectors = ['control.json', 'control-capabilities.json'].flatMap((file) => read<ValidVector>(file));

  it.each(vectors)('$name: decodes', ({ text, message }) => {
    expect(decodeControl(text)).toEqual({ ok: true, message });
  });

  it.each(vectors.filter((vector) => !vector.decode_only))('$name: encodes to the exact text', ({ text, message }) => {
    expect(encodeControl(message)).toBe(text);
  });

  it('cover every control message', () => {
    expect([...new Set(vectors.map((vector) => vector.message.type))].sort()).toEqual([...CONTROL_TYPES].sort());
  });

  const invalid = ['control-invalid.json', 'control-capabilities-invalid.json'];

  it.each(invalid.flatMap((file) => read<InvalidVector>(file)))('$name: is refused', ({ parts, code }) => {
    const decoded = decodeControl(parts.map(({ text, times }) => text.repeat(times)).join(''));
    expect(decoded).toMatchObject({ ok: false, fault: { code } });
  });
});
