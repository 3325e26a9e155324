// Messages that two parsers could read differently, or that no parser should accept. Each message must be refused, in any pieces.

export interface RefusedMessage {
  readonly name: string;
  /** The message as text, one character per byte. */
  readonly bytes: string;
  readonly status: 400 | 431 | 501 | 505;
}

export interface HiddenRequest {
  readonly name: string;
  readonly bytes: string;
  /** Expected bodies in order, one for each request. A request hidden in a body must stay part of the body. */
  readonly bodies: readonly string[];
}

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: web.localhost\r\n\r\n';

const get = (...lines: string[]): string => ['GET / HTTP/1.1', 'Host: web.localhost', ...lines, '', ''].join('\r\n');
const post = (...lines: string[]): string => ['POST / HTTP/1.1', 'Host: web.localhost', ...lines, '', ''].join('\r\n');
const line = (requestLine: string): string => `${requestLine}\r\nHost: web.localhost\r\n\r\n`;
const host = (...hosts: string[]): string => `GET / HTTP/1.1\r\n${hosts.map((one) => `Host: ${one}\r\n`).join('')}\r\n`;
const chunked = (body: string): string => post('Transfer-Encoding: chunked') + body;
const refused = (status: RefusedMessage['status'], messages: Record<string, string>): RefusedMessage[] =>
  Object.entries(messages).map(([name, bytes]) => ({ name, bytes, status }));

const LENGTHS = {
  'both lengths, CL first': `${post('Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n${HIDDEN}`,
  'both lengths, TE first': `${post('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${HIDDEN}`,
  'two different lengths': `${post('Content-Length: 5', 'Content-Length: 6')}hello!`,
  'two equal lengths': `${post('Content-Length: 5', 'Content-Length: 5')}hello`,
  'a list of lengths': `${post('Content-Length: 5, 6')}hello!`,
  'a list of equal lengths': `${post('Content-Length: 5, 5')}hello`,
  'a signed length': `${post('Content-Length: +5')}hello`,
  'a negative length': `${post('Content-Length: -5')}hello`,
  'a hexadecimal length': `${post('Content-Length: 0x5')}hello`,
  'hexadecimal digits': `${post('Content-Length: a')}helloworld`,
  'an empty length': `${post('Content-Length:')}hello`,
  'a length of blanks': `${post('Content-Length: \t ')}hello`,
  'a length with a fraction': `${post('Content-Length: 5.0')}hello`,
  'a length with an exponent': `${post('Content-Length: 5e0')}hello`,
  'a length with a group separator': `${post('Content-Length: 1_0')}helloworld`,
  'a length in quotes': `${post('Content-Length: "5"')}hello`,
  'a length with a word': `${post('Content-Length: 5 bytes')}hello`,
  'a length with inner blanks': `${post('Content-Length: 1 0')}helloworld`,
  'a length beyond 2^53': post('Content-Length: 9007199254740993'),
  'a length beyond 2^64': post('Content-Length: 18446744073709551621'),
  'a length of a hundred zeros': `${post(`Content-Length: ${'0'.repeat(100)}5`)}hello`,
  'a length in digits of another script': `${post('Content-Length: \xb2')}he`,
  'a length behind a tab': `${post('Content-Length:\t5')}hello`,
  'a length before a tab': `${post('Content-Length: 5\t')}hello`,
  'a length behind a vertical tab': `${post('Content-Length: \x0b5')}hello`,
};

const CODINGS = {
  'chunked, then identity': `${post('Transfer-Encoding: chunked, identity')}0\r\n\r\n`,
  'chunked twice in a list': `${post('Transfer-Encoding: chunked, chunked')}0\r\n\r\n`,
  'chunked twice in two fields': `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  'chunked and identity in two fields': `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity')}0\r\n\r\n`,
  'identity alone': `${post('Transfer-Encoding: identity')}${HIDDEN}`,
  'gzip alone': post('Transfer-Encoding: gzip'),
  xchunked: `${post('Transfer-Encoding: xchunked')}0\r\n\r\n`,
  chunkedx: `${post('Transfer-Encoding: chunkedx')}0\r\n\r\n`,
  'chunked in quotes': `${post('Transfer-Encoding: "chunked"')}0\r\n\r\n`,
  'chunked with a parameter': `${post('Transfer-Encoding: chunked;q=1')}0\r\n\r\n`,
  'chunked with a comma after': `${post('Transfer-Encoding: chunked,')}0\r\n\r\n`,
  'chunked with a comma before': `${post('Transfer-Encoding: ,chunked')}0\r\n\r\n`,
  'an empty coding': `${post('Transfer-Encoding:')}0\r\n\r\n`,
  'chunked before a tab': `${post('Transfer-Encoding: chunked\t')}0\r\n\r\n`,
  'chunked behind a vertical tab': `${post('Transfer-Encoding: \x0bchunked')}0\r\n\r\n`,
  'chunked behind a NUL': `${post('Transfer-Encoding: \0chunked')}0\r\n\r\n`,
  'chunked folded': `${post('Transfer-Encoding:\r\n chunked')}0\r\n\r\n`,
  'a coding in HTTP/1.0': 'POST / HTTP/1.0\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a coding with a space before the colon': `${post('Transfer-Encoding : chunked')}0\r\n\r\n`,
  'a coding with a tab before the colon': `${post('Transfer-Encoding\t: chunked')}0\r\n\r\n`,
  'a coding behind a bare CR': `${post('X: y\rTransfer-Encoding: chunked')}0\r\n\r\n`,
  'a coding behind a bare LF': `${post('X: y\nTransfer-Encoding: chunked')}0\r\n\r\n`,
};

const LINES = {
  'bare LF after the request line': 'GET / HTTP/1.1\nHost: web.localhost\r\n\r\n',
  'bare LF after a field': 'GET / HTTP/1.1\r\nHost: web.localhost\nX: y\r\n\r\n',
  'bare LF as the empty line': 'GET / HTTP/1.1\r\nHost: web.localhost\r\n\n',
  'bare LF throughout': 'GET / HTTP/1.1\nHost: web.localhost\n\n',
  'bare LF in the first line, and nothing more': 'GET / HTTP/1.1\n',
  'bare LF before the request line': `\n${get()}`,
  'bare CR in a value': get('X: a\rb'),
  'bare CR as a line end': 'GET / HTTP/1.1\rHost: web.localhost\r\n\r\n',
  'CR CR LF': 'GET / HTTP/1.1\r\r\nHost: web.localhost\r\n\r\n',
  'many empty lines first': `${'\r\n'.repeat(50)}${get()}`,
  'a folded value': get('X: a', ' b'),
  'a value folded with a tab': get('X: a', '\tb'),
  'a fold right after the request line': 'GET / HTTP/1.1\r\n Host: web.localhost\r\n\r\n',
  'a fold of blanks only': get('X: a', ' '),
  'NUL in a value': get('X: a\0b'),
  'NUL in a name': get('X\0: a'),
  'DEL in a value': get('X: a\x7fb'),
  'a backspace in a value': get('X: a\bb'),
  'an escape in a value': get('X: \x1b[2J'),
  'a space before the colon': get('X : a'),
  'a space in a name': get('X Y: a'),
  'a line without a colon': get('Content-Length'),
  'a line of one colon': get(': a'),
  'parentheses in a name': get('X(y): a'),
  'a slash in a name': get('X/y: a'),
  'a letter beyond ASCII in a name': get('X\xe4: a'),
  'a name in brackets': get('[Content-Length]: 5'),
  'a name in quotes': get('"Content-Length": 5'),
};

const REQUEST_LINES = {
  'no target': line('GET HTTP/1.1'),
  'no version': line('GET /'),
  'no method': line('/ HTTP/1.1'),
  'two spaces after the method': line('GET  / HTTP/1.1'),
  'two spaces after the target': line('GET /  HTTP/1.1'),
  'a tab for a space': line('GET\t/ HTTP/1.1'),
  'a space at the end': line('GET / HTTP/1.1 '),
  'a space at the beginning': line(' GET / HTTP/1.1'),
  'a space in the target': line('GET /a b HTTP/1.1'),
  'a second version': line('GET / HTTP/1.1 HTTP/1.1'),
  'a target beyond ASCII': line('GET /\xe4 HTTP/1.1'),
  'NUL in the target': line('GET /\0 HTTP/1.1'),
  'a fragment': line('GET /a#b HTTP/1.1'),
  'the target * with GET': line('GET * HTTP/1.1'),
  'a target that is no path': line('GET web.localhost:80 HTTP/1.1'),
  'a target of another scheme': line('GET file:///etc/passwd HTTP/1.1'),
  'a target without a host': line('GET http:///x HTTP/1.1'),
  'a user in the target': line('GET http://a@web.localhost/ HTTP/1.1'),
  'a target whose host is odd': line('GET http://web.localhost,evil/ HTTP/1.1'),
  'a method with an odd character': line('GE(T / HTTP/1.1'),
  'HTTP in small letters': line('GET / http/1.1'),
  'a version without a minor part': line('GET / HTTP/1'),
  'a version of three digits': line('GET / HTTP/1.10'),
  'a response': 'HTTP/1.1 200 OK\r\nHost: web.localhost\r\n\r\n',
};

const HOSTS = {
  'no Host': 'GET / HTTP/1.1\r\n\r\n',
  'no Host but an absolute target': 'GET http://web.localhost/ HTTP/1.1\r\n\r\n',
  'two Hosts': host('web.localhost', 'evil.localhost'),
  'two equal Hosts': host('web.localhost', 'web.localhost'),
  'two Hosts in HTTP/1.0': 'GET / HTTP/1.0\r\nHost: a.localhost\r\nHost: b.localhost\r\n\r\n',
  'a list of Hosts': host('a.localhost, b.localhost'),
  'an empty Host': host(''),
  'a Host with a path': host('web.localhost/evil'),
  'a Host with a user': host('evil@web.localhost'),
  'a Host with a space': host('web.localhost evil'),
  'a Host with a percent sign': host('web%2elocalhost'),
  'a Host with a port of letters': host('web.localhost:http'),
  'a Host with a port too high': host('web.localhost:65536'),
  'a Host with two ports': host('web.localhost:80:81'),
  'a Host with an open bracket': host('[::1'),
  'a Host of another script': host('w\xebb.localhost'),
  'a bad Host beside an absolute target': line('GET http://web.localhost/ HTTP/1.1').replace('Host: web', 'Host: we b'),
};

const CHUNKS = {
  'a signed chunk size': chunked('+5\r\nhello\r\n0\r\n\r\n'),
  'a negative chunk size': chunked('-5\r\nhello\r\n0\r\n\r\n'),
  'a chunk size with 0x': chunked('0x5\r\nhello\r\n0\r\n\r\n'),
  'an empty chunk size': chunked('\r\nhello\r\n0\r\n\r\n'),
  'a chunk size of letters': chunked('five\r\nhello\r\n0\r\n\r\n'),
  'a chunk size beyond 2^53': chunked('20000000000001\r\nhello'),
  'a chunk size beyond 2^64': chunked('10000000000000005\r\nhello\r\n0\r\n\r\n'),
  'a chunk size of many zeros': chunked(`${'0'.repeat(40)}5\r\nhello\r\n0\r\n\r\n`),
  'a blank before the chunk size': chunked(' 5\r\nhello\r\n0\r\n\r\n'),
  'a blank after the chunk size': chunked('5 \r\nhello\r\n0\r\n\r\n'),
  'a chunk line that ends with LF': chunked('5\nhello\r\n0\r\n\r\n'),
  'a chunk line that ends with CR': chunked('5\rhello\r\n0\r\n\r\n'),
  'a chunk that ends with LF': chunked('5\r\nhello\n0\r\n\r\n'),
  'a chunk without its end': chunked('5\r\nhello0\r\n\r\n'),
  'a chunk longer than its size': chunked('4\r\nhello\r\n0\r\n\r\n'),
  'a chunk shorter than its size': chunked('6\r\nhello\r\n0\r\n\r\n'),
  'an extension with LF': chunked('5;a=\nb\r\nhello\r\n0\r\n\r\n'),
  'an extension with CR': chunked('5;a=\rb\r\nhello\r\n0\r\n\r\n'),
  'an extension with NUL': chunked('5;a=\0\r\nhello\r\n0\r\n\r\n'),
  'an extension without a name': chunked('5;\r\nhello\r\n0\r\n\r\n'),
  'an extension with an open quote': chunked('5;a="b\r\nhello\r\n0\r\n\r\n'),
  'an extension that is too long': chunked(`5;a=${'b'.repeat(5000)}\r\nhello\r\n0\r\n\r\n`),
  'an end that is LF alone': chunked('5\r\nhello\r\n0\r\n\n'),
  'an end without its empty line': chunked(`5\r\nhello\r\n0\r\n${HIDDEN}`),
  'a trailer that is a length': chunked('0\r\nContent-Length: 5\r\n\r\n'),
  'a trailer that is a coding': chunked('0\r\nTransfer-Encoding: chunked\r\n\r\n'),
  'a trailer that is a Host': chunked('0\r\nHost: evil.localhost\r\n\r\n'),
  'a trailer that ends the connection': chunked('0\r\nConnection: close\r\n\r\n'),
  'a trailer with a space before the colon': chunked('0\r\nX : y\r\n\r\n'),
  'a folded trailer': chunked('0\r\nX: y\r\n z\r\n\r\n'),
  'a trailer with NUL': chunked('0\r\nX: \0\r\n\r\n'),
  'a trailer with LF alone': chunked('0\r\nX: y\n\r\n'),
  'trailers that are too long': chunked(`0\r\nX: ${'y'.repeat(9000)}\r\n\r\n`),
};

export const SMUGGLING_CORPUS: readonly RefusedMessage[] = [
  ...refused(400, LENGTHS),
  ...refused(400, CODINGS),
  ...refused(501, {
    'gzip, then chunked': `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
    'identity, then chunked': `${post('Transfer-Encoding: identity, chunked')}0\r\n\r\n`,
    CONNECT: 'CONNECT web.localhost:443 HTTP/1.1\r\nHost: web.localhost:443\r\n\r\n',
  }),
  ...refused(400, LINES),
  ...refused(400, REQUEST_LINES),
  ...refused(505, {
    'HTTP/2.0': line('GET / HTTP/2.0'),
    'HTTP/1.2': line('GET / HTTP/1.2'),
    'HTTP/0.9': line('GET / HTTP/0.9'),
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  }),
  ...refused(400, HOSTS),
  ...refused(400, CHUNKS),
  ...refused(431, {
    'a head over 32 KiB in one field': get(`X: ${'y'.repeat(33 * 1024)}`),
    'a head over 32 KiB that never ends a line': `GET /${'y'.repeat(40 * 1024)}`,
    'more than 128 fields': get(...Array.from({ length: 128 }, (_, index) => `X-${index}: y`)),
  }),
];

/** Valid messages that must be parsed in only one way. */
export const HIDDEN_REQUESTS: readonly HiddenRequest[] = [
  {
    name: 'a request in a body of that length',
    bytes: post(`Content-Length: ${HIDDEN.length}`) + HIDDEN,
    bodies: [HIDDEN],
  },
  {
    name: 'a request in a chunk',
    bytes: chunked(`${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`),
    bodies: [HIDDEN],
  },
  {
    name: 'a request in a quoted extension',
    bytes: chunked('5;a="GET / HTTP/1.1"\r\nhello\r\n0\r\n\r\n'),
    bodies: ['hello'],
  },
  { name: 'a request after a body', bytes: `${post('Content-Length: 5')}hello${HIDDEN}`, bodies: ['hello', ''] },
  { name: 'a request after a last chunk', bytes: `${chunked('0\r\n\r\n')}${HIDDEN}`, bodies: ['', ''] },
  { name: 'a GET with a body', bytes: `${get('Content-Length: 5')}GET /${HIDDEN}`, bodies: ['GET /', ''] },
  { name: 'no length and no coding', bytes: post() + HIDDEN, bodies: ['', ''] },
  { name: 'a length of zeros', bytes: `${post('Content-Length: 0000')}${HIDDEN}`, bodies: ['', ''] },
  {
    name: 'a length with zeros before it',
    bytes: `${post('Content-Length: 0005')}hello${HIDDEN}`,
    bodies: ['hello', ''],
  },
  {
    name: 'a length that is not ours to read',
    bytes: `${post('X-Content-Length: 5', 'Content_Length: 5')}${HIDDEN}`,
    bodies: ['', ''],
  },
  {
    name: 'a coding in other letters',
    bytes: `${post('TRANSFER-ENCODING: CHUNKED')}5\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
    bodies: ['hello', ''],
  },
  {
    name: 'Connection names the length',
    bytes: `${post('Connection: content-length', 'Content-Length: 5')}hello${HIDDEN}`,
    bodies: ['hello', ''],
  },
];
