import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHUNK_END, chunkLine, LengthBody, lastChunk } from './bodies.ts';
import { latin1Text } from './characters.ts';
import { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
import { BODY_BAD, BODY_INCOMPLETE } from './framing.ts';
import { latin1Bytes } from './request-reader.fixture.ts';

interface Result {
  readonly out: string;
  readonly end: number;
  readonly forwards: number;
  readonly body: ChunkedBody;
}

const scan = (text: string, form: ChunkedForm, cuts: readonly number[] = []): Result => {
  const bytes = latin1Bytes(text);
  const body = new ChunkedBody(form);
  const stops = [0, ...cuts.filter((cut) => cut < bytes.length), bytes.length].toSorted((a, b) => a - b);
  const result = { out: '', end: BODY_INCOMPLETE, forwards: 0, body };
  for (const [index, from] of stops.slice(0, -1).entries()) {
    const to = stops[index + 1] as number;
    if (to === from) continue;
    result.end = body.push(bytes, from, to, {
      forward: (start, end) => {
        expect(start >= from && end <= to && end > start).toBe(true);
        result.out += latin1Text(bytes, start, end);
        result.forwards += 1;
      },
      text: (piece) => (result.out += piece),
    });
    if (result.end !== BODY_INCOMPLETE) break;
  }
  return result;
};

describe('a chunked body', () => {
  it('is forwarded in one piece if it has no extensions', () => {
    const text = '5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n';
    expect(scan(`${text}GET /`, 'chunks')).toMatchObject({ out: text, end: text.length, forwards: 1 });
    expect(scan(text, 'data')).toMatchObject({ out: 'hello0123456789', end: text.length, forwards: 2 });
  });

  it.each([
    ['5;a\r\nhello\r\n0;b=c\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ['5;a="x;\\"\t y"\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ['00005;a=b;c=d;e\r\nhello\r\n000\r\n\r\n', '00005\r\nhello\r\n000\r\n\r\n'],
  ])('is forwarded without its extensions: %j', (text, out) => {
    expect(scan(text, 'chunks')).toMatchObject({ out, end: text.length });
  });

  it('keeps its permitted trailers', () => {
    const text = '0\r\nGrpc-Status: 0\r\nSet-Cookie: a=b\r\nX-Check:  1 \r\nKeep-Alive: x\r\nTrailer: y\r\n\r\n';
    const { out, end, body } = scan(`${text}rest`, 'chunks');
    expect(out).toBe('0\r\nGrpc-Status: 0\r\nX-Check:  1 \r\n\r\n');
    expect(end).toBe(text.length);
    expect(body.trailers.map(({ lower, value }) => [lower, value])).toEqual([
      ['grpc-status', '0'],
      ['x-check', '1'],
    ]);
    expect(scan(text, 'data')).toMatchObject({ out: '', end: text.length, body: { trailers: { length: 2 } } });
  });

  it('with an error names the error, and forwards nothing of the invalid piece', () => {
    expect(scan('5\r\nhelloX\r\n0\r\n\r\n', 'chunks')).toMatchObject({
      out: '',
      end: BODY_BAD,
      body: { problem: 'chunk longer than the chunk size' },
    });
  });

  it('stays invalid after an error', () => {
    const { body } = scan('x', 'chunks');
    const more = latin1Bytes('0\r\n\r\n');
    expect(body.push(more, 0, more.length, { forward: () => {}, text: () => {} })).toBe(BODY_BAD);
  });

  it('can have chunks up to 2^53 - 1 bytes, and their data is not inspected', () => {
    const body = new ChunkedBody();
    const line = latin1Bytes('1fffffffffffff\r\n');
    expect(body.push(line, 0, line.length, { forward: () => {}, text: () => {} })).toBe(BODY_INCOMPLETE);
    const untouchable = new Proxy(new Uint8Array(0), {
      get: () => {
        throw new Error('the data was looked at');
      },
    });
    const ranges: number[][] = [];
    const sink = { forward: (start: number, end: number) => ranges.push([start, end]), text: () => {} };
    expect(body.push(untouchable, 100, 2 ** 40, sink)).toBe(BODY_INCOMPLETE);
    expect(ranges).toEqual([[100, 2 ** 40]]);
  });

  it('is forwarded the same for any split, and equals its own written form', () => {
    const chunk = fc.string({
      unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      minLength: 1,
    });
    const extension = fc.constantFrom('', ';a', ';a=b', ';a="\\"x;\t"');
    const trailers = fc.constantFrom<[string, string][]>(
      [],
      [['x', 'y']],
      [
        ['grpc-status', '0'],
        ['grpc-message', ''],
      ],
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(chunk, extension)), trailers, fc.array(fc.nat(300)), (chunks, fields, cuts) => {
        const sizeOf = (data: string, ext: string): string => chunkLine(data.length).replace('\r\n', `${ext}\r\n`);
        const wire = (withExtensions: boolean): string =>
          chunks.map(([data, ext]) => sizeOf(data, withExtensions ? ext : '') + data + CHUNK_END).join('') +
          lastChunk(fields);
        const text = wire(true);
        expect(scan(text, 'chunks', cuts)).toMatchObject({ out: wire(false), end: text.length });
        const data = chunks.map(([content]) => content).join('');
        expect(scan(text, 'data', cuts)).toMatchObject({ out: data, end: text.length });
      }),
    );
  });
});

it('a trailer cannot break the chunk lines that the server writes', () => {
  expect(chunkLine(255)).toBe('ff\r\n');
  expect(
    lastChunk([
      ['a', 'b\r\nc: d'],
      ['e f', 'g'],
      ['h', 'i'],
    ]),
  ).toBe('0\r\nh: i\r\n\r\n');
});

it('a body with a known length ends after that length, for any split', () => {
  const body = new LengthBody(10);
  const bytes = new Uint8Array(20);
  const ranges: number[][] = [];
  const sink = { forward: (start: number, end: number) => ranges.push([start, end]), text: () => {} };
  expect(body.push(bytes, 2, 6, sink)).toBe(BODY_INCOMPLETE);
  expect(body.remaining).toBe(6);
  expect(body.push(bytes, 6, 6, sink)).toBe(BODY_INCOMPLETE);
  expect(body.push(bytes, 0, 20, sink)).toBe(6);
  expect(ranges).toEqual([
    [2, 6],
    [0, 6],
  ]);
});
