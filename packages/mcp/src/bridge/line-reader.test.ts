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

describe('lines of a byte stream', () => {
  it('are the same for any chunk boundaries', () => {
    const text = `{"a":"é"}\n\r\n  \n{"b":2}\r\n{"id":12,"result":"${long}"}\nlast`;
    const bytes = Buffer.from(text);
    const whole = read([text]);
    expect(whole).toEqual(['{"a":"é"}', '{"b":2}', { id: 12 }, 'last']);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
    }
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
  });

  it('can be as long as the limit, and not a byte longer', () => {
    expect(read([`${long}\n`])).toEqual([long]);
    expect(read([`${long}y\n`, 'next\n'])).toEqual([{ id: null }, 'next']);
  });

  it.each([
    ['an id after the result', `{"result":{"text":"${long}"},"jsonrpc":"2.0","id":7}`, 7],
    ['an id before the result', `{"jsonrpc":"2.0", "id" : 8 ,"result":"${long}"}`, 8],
    ['no id nested in the result', `{"result":{"id":1,"a":[{"id":2}],"text":"${long}"},"id":9}`, 9],
    ['no id inside of a string', `{"result":"\\",\\"id\\":3,${long}","id":10}`, 10],
    ['null for an id that is not a number', `{"result":"${long}","id":"11"}`, null],
    ['null for a notification', `{"method":"m","params":{"id":4,"text":"${long}"}}`, null],
    ['null if only a value is named id', `{"method":"id","x":5,"params":"${long}"}`, null],
    ['null for a line that is not JSON', `id 6: ${long}`, null],
  ])('above the limit are reported with their message id: %s', (_, line, id) => {
    expect(read([`${line}\n`])).toEqual([{ id }]);
  });
});
