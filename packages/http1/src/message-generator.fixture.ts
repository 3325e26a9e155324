// Random requests: valid requests, and the same requests after a few mutations. The random source is an argument, so that a seed repeats
// a run.

export type Chance = () => number;

const pick = <T>(chance: Chance, from: readonly T[]): T => from[Math.floor(chance() * from.length)] as T;
const below = (chance: Chance, limit: number): number => Math.floor(chance() * limit);

const METHODS = ['GET', 'GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'PROPFIND'];
const TARGETS = [
  '/',
  '/a/b.js?c=d&e',
  '/%e4',
  '//x',
  '/?',
  '/a|b',
  '/{x}"y"',
  'http://web.localhost/z',
  'http://web.localhost',
];
const HOSTS = ['web.localhost', 'WEB.localhost:8000', 'a', '[::1]:80', '127.0.0.1'];
const FIELDS = [
  'Accept: */*',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64)',
  'X-Empty:',
  'X-Blank: \t ',
  'X-Bytes: \x80\xe4\xff',
  'x-a:b',
  'Cookie: a=b; c="d"',
  'Connection: keep-alive',
  'Connection: keep-alive, x-a',
  'TE: trailers',
  'Range: bytes=0-1',
  "!#$%&'*+-.^_`|~: z",
];
const BODIES = ['', 'a', 'hello', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', '0\r\n\r\n', '\0\xff\r\n', 'x'.repeat(300)];
const EXTENSIONS = ['', '', '', ';a', ';a=b', ';a="b c"', ';a;b=c'];
const TRAILERS = ['', '', '', 'X-Check: 1\r\n', 'Grpc-Status: 0\r\nGrpc-Message: ok\r\n'];

const chunkedBody = (chance: Chance): string => {
  let body = '';
  for (let count = below(chance, 4); count > 0; count -= 1) {
    const data = pick(chance, BODIES);
    const size = pick(chance, [
      data.length.toString(16),
      data.length.toString(16).toUpperCase(),
      `00${data.length.toString(16)}`,
    ]);
    if (data !== '') body += `${size}${pick(chance, EXTENSIONS)}\r\n${data}\r\n`;
  }
  return `${body}0${pick(chance, EXTENSIONS)}\r\n${pick(chance, TRAILERS)}\r\n`;
};

const validRequest = (chance: Chance): string => {
  const lines = [`${pick(chance, METHODS)} ${pick(chance, TARGETS)} HTTP/1.1`, `Host: ${pick(chance, HOSTS)}`];
  for (let count = below(chance, 5); count > 0; count -= 1) lines.push(pick(chance, FIELDS));
  let body = '';
  if (chance() < 0.35) {
    body = pick(chance, BODIES);
    lines.splice(1 + below(chance, lines.length), 0, `Content-Length: ${body.length}`);
  } else if (chance() < 0.6) {
    body = chunkedBody(chance);
    lines.splice(
      1 + below(chance, lines.length),
      0,
      pick(chance, ['Transfer-Encoding: chunked', 'transfer-encoding:Chunked']),
    );
  }
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
};

/** Returns one to three valid requests in a row. */
export const validMessage = (chance: Chance): string =>
  Array.from({ length: 1 + below(chance, 3) }, () => validRequest(chance)).join('');

const ACCIDENTS = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
  '\0',
  '\x0b',
  '\x7f',
  '\xff',
  ':',
  ',',
  ';',
  '=',
  '"',
  '0',
  '5',
  '-',
  '+',
  'x',
  '#',
  'chunked',
  ', chunked',
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Host: b\r\n',
  'Connection: close\r\n',
  'GET / HTTP/1.1\r\n',
  '0\r\n\r\n',
];

/** Returns a random position. Half of the positions are where lines, names, values and sizes meet. */
const offsetIn = (text: string, chance: Chance): number => {
  const at = below(chance, text.length + 1);
  if (chance() < 0.5) return at;
  const joint = text.slice(at).search(/[\r\n: ;,=]/);
  return joint === -1 ? at : at + joint + below(chance, 2);
};

const SNEAKY = [' ', '\t', ',', ';', '0', '+', '-', '\x0b', '\r', ';x', ', chunked', ', 5', 'x', '.'];
const EXTRA_LINES = [
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: identity\r\n',
  'Host: a\r\n',
  'Connection: close\r\n',
  ' folded\r\n',
  'X: y\r\n',
];

/** Mutates one line: duplicated, removed, preceded by an extra line, or with a suspicious character where its parts meet. */
const hurtLine = (text: string, chance: Chance): string => {
  const lines = text.split(/(?<=\r\n)/);
  const at = below(chance, lines.length);
  const line = lines[at] ?? '';
  switch (below(chance, 6)) {
    case 0:
      lines.splice(at, 0, line);
      break;
    case 1:
      lines.splice(at, 1);
      break;
    case 2:
      lines.splice(at, 0, pick(chance, EXTRA_LINES));
      break;
    case 3:
      lines[at] = line.replace('\r\n', `${pick(chance, SNEAKY)}\r\n`);
      break;
    case 4:
      lines[at] = line.replace(
        ': ',
        pick(chance, [' : ', ':', ':\t', ': \x0b', ': 0', ': +', `: ${pick(chance, SNEAKY)}`]),
      );
      break;
    default:
      lines[at] = pick(chance, SNEAKY) + line;
  }
  return lines.join('');
};

/** Applies one mutation, at times two or three: bytes are inserted, removed, duplicated, changed or cut off. */
export const mutated = (text: string, chance: Chance): string => {
  let result = text;
  for (let count = pick(chance, [1, 1, 1, 2, 3]); count > 0; count -= 1) {
    if (chance() < 0.5) {
      result = hurtLine(result, chance);
      continue;
    }
    const at = offsetIn(result, chance);
    const length = 1 + below(chance, pick(chance, [1, 4, 30]));
    const before = result.slice(0, at);
    switch (below(chance, 6)) {
      case 0:
      case 1:
        result = before + pick(chance, ACCIDENTS) + result.slice(at);
        break;
      case 2:
        result = before + result.slice(at + length);
        break;
      case 3:
        result = before + result.slice(at, at + length) + result.slice(at);
        break;
      case 4:
        result = before + String.fromCharCode(below(chance, 256)) + result.slice(at + 1);
        break;
      default:
        result = chance() < 0.2 ? before : before + pick(chance, ACCIDENTS) + result.slice(at + length);
    }
  }
  return result;
};
