import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { MCP_CALLS_MAX, MCP_HELD_MAX_BYTES, MCP_LINE_MAX_BYTES, StdioTransport } from './stdio-transport.ts';

let stdin: PassThrough;
let out: string;
let isFull: boolean;
let onDrain: (() => void)[];
let taken: unknown[];
let transport: StdioTransport;

beforeEach(async () => {
  stdin = new PassThrough();
  out = '';
  isFull = false;
  onDrain = [];
  taken = [];
  const stdout = {
    write: (text: string): boolean => {
      out += text;
      return !isFull;
    },
    once: (_event: string, listener: () => void) => onDrain.push(listener),
  };
  transport = new StdioTransport({ stdin, stdout });
  transport.onmessage = (message) => taken.push(message);
  await transport.start();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const say = async (...chunks: (string | Buffer)[]): Promise<void> => {
  for (const chunk of chunks) {
    stdin.write(chunk);
    await turn();
  }
};

const answers = (): { id: unknown; error: { code: number; message: string } }[] =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ReturnType<typeof answers>[number]);

const ping = (id: number | string): string => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`;

describe('a line on stdin', () => {
  it('is one message, even if it arrives in pieces', async () => {
    const bytes = Buffer.from(
      `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { text: 'žluť€😀' } })}\n`,
    );
    await say(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)));
    await say(ping(2) + ping(3) + ping(4).slice(0, 5), ping(4).slice(5));
    expect(taken).toMatchObject([{ id: 1, params: { text: 'žluť€😀' } }, { id: 2 }, { id: 3 }, { id: 4 }]);
    expect(out).toBe('');
  });

  it('may end with a carriage return, and empty lines are skipped', async () => {
    await say('\r\n', '\n', ping(1).replace('\n', '\r\n'));
    expect([taken.length, out]).toEqual([1, '']);
  });

  it.each([
    'not json',
    '{"jsonrpc":"2.0","id":1,',
    '\u0000',
    '{"jsonrpc":"2.0","id":1,"method":"a\u0000"}',
    '\ufffd\ufffe',
  ])('is answered with -32700 if the JSON is invalid, and the next line is read: %j', async (line) => {
    await say(`${line}\n${ping(7)}`);
    expect(answers()).toMatchObject([{ id: null, error: { code: -32_700 } }]);
    expect(taken).toMatchObject([{ id: 7 }]);
  });

  it.each([
    ['[]', null],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', null],
    ['null', null],
    ['"text"', null],
    ['{"id":5,"method":"ping"}', 5],
    ['{"jsonrpc":"1.0","id":"x","method":"ping"}', 'x'],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', null],
    ['{"jsonrpc":"2.0","id":6,"method":7}', 6],
  ])('is answered with -32600 and the id if the message is invalid: %s', async (line, id) => {
    await say(`${line}\n${ping(7)}`);
    expect(answers()).toMatchObject([{ id, error: { code: -32_600 } }]);
    expect(taken).toMatchObject([{ id: 7 }]);
  });

  it('may have 1 MiB, and a longer line above the limit is dropped with an error', async () => {
    await say(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { text: 'a'.repeat(1024 * 1024) } })}\n`);
    expect(taken).toHaveLength(1);
    const piece = 'b'.repeat(MCP_LINE_MAX_BYTES / 2);
    await say(piece, piece, piece, piece, `\n${ping(2)}`);
    expect(answers()).toMatchObject([{ id: null, error: { code: -32_600 } }]);
    expect(taken).toMatchObject([{ id: 1 }, { id: 2 }]);
  });
});

describe('calls in progress', () => {
  it('are limited, and an answered or canceled call makes room for another', async () => {
    for (let id = 0; id < MCP_CALLS_MAX; id += 1) stdin.write(ping(id));
    await say(ping('over'));
    expect(answers()).toMatchObject([{ id: 'over', error: { code: -32_000 } }]);
    await transport.send({ jsonrpc: '2.0', id: 3, result: {} });
    await say(ping('next'), ping('over'));
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 4 } };
    await say(`${JSON.stringify(cancelled)}\n`, ping('last'));
    expect(
      taken.filter((message) => ['next', 'last', 'over'].includes(String((message as { id?: unknown }).id))),
    ).toHaveLength(2);
  });

  it('must have different ids', async () => {
    await say(ping(1), ping(1), ping('1'));
    expect(answers()).toMatchObject([{ id: 1, error: { code: -32_600 } }]);
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} });
    await say(ping(1));
    expect(taken).toMatchObject([{ id: 1 }, { id: '1' }, { id: 1 }]);
  });

  it('pause reading from stdin while stdout is full', async () => {
    isFull = true;
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} });
    await transport.send({ jsonrpc: '2.0', id: 2, result: {} });
    await say(ping(3));
    expect([taken.length, onDrain.length]).toEqual([0, 1]);
    isFull = false;
    onDrain[0]?.();
    await turn();
    expect(taken).toMatchObject([{ id: 3 }]);
  });
});

describe('a host that does not read stdout', () => {
  it('gets the remaining lines processed in order, one per drain', async () => {
    transport.onmessage = (message) => {
      taken.push(message);
      void transport.send({ jsonrpc: '2.0', id: (message as { id: number }).id, result: {} });
    };
    isFull = true;
    await say(ping(1) + ping(2) + ping(3).slice(0, 9), ping(3).slice(9) + ping(4));
    expect(taken).toMatchObject([{ id: 1 }]);
    onDrain[0]?.();
    expect(taken).toMatchObject([{ id: 1 }, { id: 2 }]);
    isFull = false;
    onDrain[1]?.();
    await say(ping(5));
    expect(taken).toMatchObject([{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }, { id: 5 }]);
  });

  it('does not delay the end of stdin', async () => {
    isFull = true;
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} });
    await say(ping(2));
    stdin.end();
    await transport.ended;
    expect(taken).toEqual([]);
  });

  it('can fill only a limited buffer until stdin is paused', async () => {
    isFull = true;
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} });
    await say(Buffer.alloc(MCP_HELD_MAX_BYTES - 1, ' '));
    expect(stdin.isPaused()).toBe(false);
    await say('  ');
    expect(stdin.isPaused()).toBe(true);
    isFull = false;
    onDrain[0]?.();
    await say(`\n${ping(2)}`);
    expect([taken, stdin.isPaused()]).toMatchObject([[{ id: 2 }], false]);
  });
});

describe('the end of the stdio transport', () => {
  it('waits until stdout has taken all output', async () => {
    const stdout = new PassThrough({ highWaterMark: 10 });
    const slow = new StdioTransport({ stdin, stdout });
    await slow.flushed();
    await slow.send({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(1000) } });
    await slow.send({ jsonrpc: '2.0', id: 2, result: {} });
    let isFlushed = false;
    const flushed = slow.flushed().then(() => {
      isFlushed = true;
    });
    await turn();
    expect(isFlushed).toBe(false);
    let read = '';
    stdout.on('data', (chunk) => {
      read += chunk;
    });
    await flushed;
    expect(read.split('\n')).toHaveLength(3);
  });

  it('follows the end of stdin, and closing removes its listeners', async () => {
    let isEnded = false;
    void transport.ended.then(() => {
      isEnded = true;
    });
    await turn();
    expect(isEnded).toBe(false);
    stdin.end();
    await transport.ended;
    await transport.close();
    expect([stdin.listenerCount('data'), stdin.listenerCount('end')]).toEqual([0, 0]);
    out = '';
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} });
    expect(out).toBe('');
  });

  it('also follows an error of stdin', async () => {
    stdin.destroy(new Error('gone'));
    await transport.ended;
  });
});
