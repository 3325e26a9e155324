import { describe, expect, it } from 'vitest';
import { CapturedBody } from './captured-body.ts';

const take = (body: CapturedBody, text: string): number => body.take(Buffer.from(text, 'latin1'), 0, text.length);

describe('a captured body', () => {
  it('keeps its beginning, counts the rest, and returns the bytes kept per piece', () => {
    const body = new CapturedBody({ maxBytes: 5 });
    expect([take(body, 'abc'), take(body, 'def'), take(body, 'ghi')]).toEqual([3, 2, 0]);
    expect([body.bytes, body.kept, body.isWhole]).toEqual([9, 'abcde', false]);
  });

  it('only counts bytes if its limit is 0', () => {
    const body = new CapturedBody({ maxBytes: 0 });
    expect(body.isWhole).toBe(true);
    expect(take(body, 'abc')).toBe(0);
    expect([body.bytes, body.kept, body.isWhole]).toEqual([3, '', false]);
  });

  it('copies the bytes, because the buffer belongs to the connection', () => {
    const body = new CapturedBody({ maxBytes: 9 });
    const memory = Buffer.from('..hello..');
    body.take(memory, 2, 7);
    memory.fill('#');
    expect(body.kept).toBe('hello');
  });

  it('keeps every byte as one character', () => {
    const body = new CapturedBody({ maxBytes: 9 });
    body.take(Buffer.from([0x00, 0x80, 0xff]), 0, 3);
    expect([...Buffer.from(body.kept, 'latin1')]).toEqual([0x00, 0x80, 0xff]);
  });

  it('removes the chunked framing, however it is split', () => {
    const body = new CapturedBody({ maxBytes: 9, isInChunks: true });
    for (const byte of '3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n') take(body, byte);
    expect([body.bytes, body.kept]).toEqual([7, 'abcdefg']);
  });

  it('stops at invalid chunked framing', () => {
    const body = new CapturedBody({ maxBytes: 9, isInChunks: true });
    take(body, '1\r\na\r\nno length\r\n');
    take(body, '1\r\nb\r\n');
    expect([body.bytes, body.kept]).toEqual([1, 'a']);
  });
});
