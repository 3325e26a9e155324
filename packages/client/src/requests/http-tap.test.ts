import { seededRandom } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { HttpTap, type SeenRequest } from './http-tap.ts';

interface Seen {
  method: string;
  path: string;
  requestBody: string;
  requestEnded: boolean;
  status: number | null;
  responseBody: string;
  end: string | null;
}

/** Creates an HTTP tap, and records its reports as plain values. */
const watch = () => {
  const seen: Seen[] = [];
  const tap = new HttpTap((head) => {
    const one: Seen = {
      method: head.method,
      path: head.path,
      requestBody: '',
      requestEnded: false,
      status: null,
      responseBody: '',
      end: null,
    };
    seen.push(one);
    const handler: SeenRequest = {
      onRequestBody: (bytes, start, end) => void (one.requestBody += bytes.toString('latin1', start, end)),
      onRequestEnd: () => void (one.requestEnded = true),
      onResponseHead: ({ status }) => void (one.status = status),
      onResponseBody: (bytes, start, end) => void (one.responseBody += bytes.toString('latin1', start, end)),
      onEnd: (how) => {
        expect(one.end).toBeNull();
        one.end = how;
      },
    };
    return handler;
  });
  return { tap, seen };
};

type Step = readonly ['>' | '<', string] | readonly ['end' | 'over'];

const play = (steps: readonly Step[]): Seen[] => {
  const { tap, seen } = watch();
  for (const [kind, text = ''] of steps) {
    // The bytes do not start at the beginning of their buffer, as with bytes from a socket.
    const bytes = Buffer.from(`########${text}`, 'latin1');
    if (kind === '>') tap.request(bytes, 8, bytes.length);
    else if (kind === '<') tap.response(bytes, 8, bytes.length);
    else if (kind === 'end') tap.responseEnded();
    else tap.over();
  }
  return seen;
};

const GET = 'GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n';
const POST = 'POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello';
const CHUNKED =
  'PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n';
const SOCKET = 'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

const TABLE: [name: string, steps: Step[], seen: Partial<Seen>[]][] = [
  [
    'a request and its answer',
    [
      ['>', GET],
      ['<', OK],
    ],
    [{ method: 'GET', path: '/a?b=c', requestEnded: true, status: 200, responseBody: 'hi', end: 'complete' }],
  ],
  [
    'bodies with a length and in chunks, without their framing',
    [
      ['>', POST],
      ['<', OK],
      ['>', CHUNKED],
      ['<', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'],
    ],
    [
      { requestBody: 'hello', end: 'complete' },
      { requestBody: 'hello', responseBody: 'ab', end: 'complete' },
    ],
  ],
  [
    'pipelined requests, answered in order',
    [
      ['>', GET + POST],
      ['<', `HTTP/1.1 204 No Content\r\n\r\n${OK}`],
    ],
    [
      { path: '/a?b=c', status: 204, end: 'complete' },
      { path: '/p', status: 200, end: 'complete' },
    ],
  ],
  [
    'HEAD and 304, which have no body whatever they say',
    [
      ['>', 'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['<', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n'],
      ['>', GET],
      ['<', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n'],
    ],
    [
      { status: 200, end: 'complete' },
      { status: 304, end: 'complete' },
    ],
  ],
  [
    'interim answers pass',
    [
      ['>', POST],
      ['<', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'],
      ['<', OK],
    ],
    [{ status: 200, responseBody: 'hi', end: 'complete' }],
  ],
  [
    'an answer that ends with the connection',
    [['>', GET], ['<', 'HTTP/1.0 200 OK\r\n\r\nto the'], ['<', ' end'], ['end']],
    [{ responseBody: 'to the end', end: 'complete' }],
  ],
  [
    'an early answer, while the body is still coming',
    [
      ['>', 'POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe'],
      ['<', 'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'],
      ['>', 'llo'],
      ['>', GET],
      ['<', OK],
    ],
    [
      { requestBody: 'he', requestEnded: false, status: 413, end: 'complete' },
      { path: '/a?b=c', end: 'complete' },
    ],
  ],
  [
    'a service that hangs up without an answer, and in the middle of one',
    [['>', GET], ['end']],
    [{ status: null, end: 'aborted' }],
  ],
  ['an answer that is cut off', [['>', GET], ['<', OK.slice(0, -1)], ['end']], [{ status: 200, end: 'aborted' }]],
  ['a visitor that leaves', [['>', GET], ['<', OK.slice(0, -1)], ['over']], [{ responseBody: 'h', end: 'aborted' }]],
  [
    'a WebSocket is left alone after 101',
    [['>', SOCKET], ['<', `${SWITCHED}\x81\x02hi`], ['>', GET], ['<', OK], ['over']],
    [{ path: '/ws', status: 101, responseBody: '', end: 'complete' }],
  ],
  [
    'a WebSocket that was refused is a request like others',
    [
      ['>', SOCKET],
      ['<', OK],
      ['>', GET],
      ['<', OK],
    ],
    [
      { path: '/ws', status: 200, end: 'complete' },
      { path: '/a?b=c', end: 'complete' },
    ],
  ],
  [
    'bytes that are sent before the 101 has come do not lose it',
    [
      ['>', `${SOCKET}\x81\x82\n\n`],
      ['<', SWITCHED],
    ],
    [{ path: '/ws', status: 101, end: 'complete' }],
  ],
  [
    'bytes that are no HTTP',
    [
      ['>', '\x16\x03\x01\x02\x00\x01\n'],
      ['<', '\x15\x03\n'],
      ['>', GET],
      ['<', OK],
    ],
    [],
  ],
  [
    'HTTP/2 with prior knowledge',
    [
      ['>', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['<', '\x00\x00\x00\x04'],
    ],
    [],
  ],
  [
    'a malformed answer ends the looking',
    [
      ['>', GET],
      ['<', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
      ['>', GET],
      ['<', OK],
    ],
    [{ status: null, end: 'aborted' }],
  ],
  [
    'malformed chunks end the looking',
    [
      ['>', GET],
      ['<', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
      ['>', GET],
      ['<', OK],
    ],
    [{ status: 200, end: 'aborted' }],
  ],
  ['an answer that nobody asked for', [['<', 'HTTP/1.1 408 Timeout\r\n\r\n'], ['>', GET], ['<', OK], ['over']], []],
  [
    'a head that is too long',
    [
      ['>', `GET / HTTP/1.1\r\nA: ${'a'.repeat(40_000)}`],
      ['>', `\r\n\r\n${GET}`],
    ],
    [],
  ],
];

describe('the HTTP tap sees', () => {
  it.each(TABLE)('%s', (_, steps, expected) => {
    const seen = play(steps);
    expect(seen).toHaveLength(expected.length);
    expect(seen).toMatchObject(expected);
  });

  it.each(TABLE)('the same byte by byte: %s', (_, steps, expected) => {
    const single = steps.flatMap((step): Step[] => {
      const [kind, text] = step;
      return text === undefined ? [step] : [...text].map((byte) => [kind as '>' | '<', byte] as const);
    });
    const seen = play(single);
    expect(seen).toHaveLength(expected.length);
    expect(seen).toMatchObject(expected);
  });
});

describe('the HTTP tap with random splits', () => {
  it('sees every exchange of a long connection as it was sent', () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const random = seededRandom(seed);
      const upTo = (most: number): number => Math.floor(random() * (most + 1));
      const requests = Array.from({ length: 12 }, (_, index) => requestAt(index, random, upTo));
      const cut = (text: string, kind: '>' | '<'): Step[] => {
        const steps: Step[] = [];
        for (let at = 0; at < text.length; ) {
          const size = 1 + upTo(random() < 0.3 ? 3 : 200);
          steps.push([kind, text.slice(at, at + size)]);
          at += size;
        }
        return steps;
      };
      const steps = requests.flatMap(({ request, response }) => [...cut(request, '>'), ...cut(response, '<')]);
      expect(play([...steps, ['over']]), `seed ${seed}`).toEqual(requests.map(({ expected }) => expected));
    }
  });
});

const requestAt = (index: number, random: () => number, upTo: (most: number) => number) => {
  const bytes = (): string => String.fromCharCode(...Array.from({ length: upTo(300) }, () => upTo(255)));
  const framed = (body: string): string => {
    if (random() < 0.5) return `Content-Length: ${body.length}\r\n\r\n${body}`;
    let text = 'Transfer-Encoding: chunked\r\n\r\n';
    for (let at = 0; at < body.length; ) {
      const size = 1 + upTo(80);
      const piece = body.slice(at, at + size);
      text += `${piece.length.toString(16)}${random() < 0.2 ? ';a="b;c"' : ''}\r\n${piece}\r\n`;
      at += size;
    }
    return `${text}0\r\n${random() < 0.2 ? 'X-Sum: 1\r\n' : ''}\r\n`;
  };
  const requestBody = bytes();
  const responseBody = bytes();
  const interim = random() < 0.2 ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : '';
  return {
    request: `POST /${index} HTTP/1.1\r\nHost: x\r\n${framed(requestBody)}`,
    response: `${interim}HTTP/1.1 ${400 + index} OK\r\n${framed(responseBody)}`,
    expected: {
      method: 'POST',
      path: `/${index}`,
      requestBody,
      requestEnded: true,
      status: 400 + index,
      responseBody,
      end: 'complete',
    },
  };
};

describe('the HTTP tap does not disturb the connection', () => {
  it('when its listener throws', () => {
    const tap = new HttpTap(() => {
      throw new Error('a mistake');
    });
    const bytes = Buffer.from(GET);
    tap.request(bytes, 0, bytes.length);
    tap.response(bytes, 0, bytes.length);
    tap.over();
  });

  it('with random bytes', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = seededRandom(seed);
      const whole = GET + POST + CHUNKED + SOCKET + OK + SWITCHED;
      const steps = Array.from({ length: 20 }, (): Step => {
        const from = Math.floor(random() * whole.length);
        const piece = whole.slice(from, from + Math.floor(random() * 120));
        const broken = random() < 0.3 ? piece.replace(/./, String.fromCharCode(Math.floor(random() * 256))) : piece;
        return [random() < 0.5 ? '>' : '<', broken];
      });
      for (const { end } of play([...steps, ['end'], ['over']])) expect(end).not.toBeNull();
    }
  });

  it('and stops parsing once there is no listener', () => {
    let asked = 0;
    const tap = new HttpTap(() => {
      asked += 1;
      return null;
    });
    const bytes = Buffer.from(GET + GET);
    tap.request(bytes, 0, bytes.length);
    tap.request(bytes, 0, bytes.length);
    expect(asked).toBe(1);
  });
});

it.each([
  ['as the last line', 'X-Trace: 1\r\nX-Tunnel-Replay: req_1', 'req_1'],
  ['with the longest id', `X-Tunnel-Replay: ${'r'.repeat(64)}`, 'r'.repeat(64)],
  ['not as the last line', 'X-Tunnel-Replay: req_1\r\nX-Trace: 1', null],
  ['inside the value of the last line', 'X-Trace: X-Tunnel-Replay: req_1', null],
  ['in lower case, as the edge never writes it', 'x-tunnel-replay: req_1', null],
])('the mark of a replay counts only as the edge writes it: %s', (_, lines, replayOf) => {
  const marks: unknown[] = [];
  const tap = new HttpTap((head) => {
    marks.push(head.replayOf);
    return null;
  });
  const bytes = Buffer.from(`########GET / HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n`);
  tap.request(bytes, 8, bytes.length);
  expect(marks).toEqual([replayOf]);
});

it('judges every response of a connection by its own content type', () => {
  const seen: boolean[] = [];
  const ignore = (): void => {};
  const tap = new HttpTap(() => ({
    onRequestBody: ignore,
    onRequestEnd: ignore,
    onResponseHead: ({ isTextual }) => void seen.push(isTextual),
    onResponseBody: ignore,
    onEnd: ignore,
  }));
  const types = ['text/html', 'text/html', 'font/woff', 'font/woff', 'text/html', '', 'image/pngg', 'image/png', null];
  for (const type of types) {
    const field = type === null ? '' : `Content-Type: ${type}\r\n`;
    const answer = Buffer.from(`HTTP/1.1 200 OK\r\n${field}Content-Length: 0\r\n\r\n`);
    const ask = Buffer.from(GET);
    tap.request(ask, 0, ask.length);
    tap.response(answer, 0, answer.length);
    answer.fill('#');
  }
  expect(seen).toEqual([true, true, false, false, true, false, false, false, false]);
});
