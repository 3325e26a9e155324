import { describe, expect, it } from 'vitest';
import { LineReader } from './line-reader.ts';

const MAX = 64;

const read = (chunks: readonly (string | Buffer)[]): unknown[] => {
  const seen: unknown[] = [];
  const reader = new LineReader(MAX, {
    onLine: (line) => seen.push(line),
    onTooLong: (id) => seen.push({ id }),
  });
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  reader.end();
  return seen;
};

const long = 'x'.repeat(MAX);

describe('lines out of chunks', () => {
  it('are the same wherever the chunks are cut', () => {
    const text = `{"a":"é"}\n\r\n  \n{"b":2}\r\n{"id":12,"result":"${long}"}\nlast`;
    const bytes = Buffer.from(text);
    const whole = read([text]);
    expect(whole).toEqual(['{"a":"é"}', '{"b":2}', { id: 12 }, 'last']);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
    }
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
  });

  it('may have the length of the bound, and no byte more', () => {
    expect(read([`${long}\n`])).toEqual([long]);
    expect(read([`${long}y\n`, 'next\n'])).toEqual([{ id: null }, 'next']);
  });

  it.each([
    ['behind the rest', `{"result":{"text":"${long}"},"jsonrpc":"2.0","id":7}`, 7],
    ['before it', `{"jsonrpc":"2.0", "id" : 8 ,"result":"${long}"}`, 8],
    ['not one of what it holds', `{"result":{"id":1,"a":[{"id":2}],"text":"${long}"},"id":9}`, 9],
    ['not one in a text', `{"result":"\\",\\"id\\":3,${long}","id":10}`, 10],
    ['none that is no number', `{"result":"${long}","id":"11"}`, null],
    ['none of a notification', `{"method":"m","params":{"id":4,"text":"${long}"}}`, null],
    ['none where there is only a value of that name', `{"method":"id","x":5,"params":"${long}"}`, null],
    ['none of a line that is no JSON', `id 6: ${long}`, null],
  ])('tell the id of a message that is too long: %s', (_, line, id) => {
    expect(read([`${line}\n`])).toEqual([{ id }]);
  });
});
