// Measures HTTP/1.1 for a browser's keep-alive GET: find the head, parse it, and write it again; the same for the response; and chunked
// bodies.
import {
  ChunkedBody,
  findHeadEnd,
  HTTP1_BOUNDS,
  newHeadSearch,
  parseRequestHead,
  parseResponseHead,
  requestHeadFor,
  resetHeadSearch,
  responseHeadFor,
} from '@tunnel/http1';

const linesOf = (...lines) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');

const request = linesOf(
  'GET /assets/app.3f9a.js?v=12 HTTP/1.1',
  'Host: web.localhost:8000',
  'Connection: keep-alive',
  'sec-ch-ua: "Chromium";v="130", "Not?A_Brand";v="99"',
  'sec-ch-ua-mobile: ?0',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,*/*;q=0.8',
  'Sec-Fetch-Site: same-origin',
  'Referer: http://web.localhost:8000/',
  'Accept-Encoding: gzip, deflate, br',
  'Accept-Language: en-US,en;q=0.9',
  'Cookie: sid=abcdef0123456789abcdef0123456789',
);
const response = linesOf(
  'HTTP/1.1 200 OK',
  'Content-Type: text/html; charset=utf-8',
  'Content-Length: 1234',
  'Date: Sun, 15 Nov 2026 03:51:22 GMT',
  'ETag: W/"4d2-abc"',
  'Cache-Control: no-cache',
  'Connection: keep-alive',
  'Keep-Alive: timeout=5',
);

const GET = { method: 'GET', upgrade: null };
const TO_SERVICE = { visitorAddress: '203.0.113.7', proto: 'https', hostHeader: 'keep' };
const TO_VISITOR = { visitorVersion: '1.1', keepAlive: true };
const requestHead = parseRequestHead(request.latin1Slice());
const responseHead = parseResponseHead(response.latin1Slice(), GET);
const written = Buffer.alloc(4096);

let kept;
const repeating = (operation) => (times) => {
  for (let done = 0; done < times; done++) kept = operation();
  if (kept === undefined) throw new Error('nothing was done');
};

const search = newHeadSearch();
const find = () => {
  resetHeadSearch(search);
  return findHeadEnd(request, 0, request.length, search, HTTP1_BOUNDS);
};

const sink = { forward: () => {}, text: () => {} };
/** Returns a body of `count` chunks of `bytes` bytes, in reads of 64 KiB. */
function chunksOf(count, bytes) {
  const chunk = Buffer.concat([linesOf(bytes.toString(16)).subarray(0, -2), Buffer.alloc(bytes), Buffer.from('\r\n')]);
  const body = Buffer.concat([...Array.from({ length: count }, () => chunk), Buffer.from('0\r\n\r\n')]);
  return () => {
    const scanner = new ChunkedBody();
    let end = -1;
    for (let at = 0; at < body.length; at += 65536)
      end = scanner.push(body, at, Math.min(body.length, at + 65536), sink);
    if (end !== body.length) throw new Error(scanner.problem ?? 'the body did not end');
    return end;
  };
}

export const http1 = [
  { name: `http1: find the end of a head of ${request.length} bytes`, run: repeating(find) },
  { name: 'http1: read that head, from its bytes', run: repeating(() => parseRequestHead(request.latin1Slice())) },
  {
    name: 'http1: write it for the service, into a buffer',
    run: repeating(() => written.latin1Write(requestHeadFor(requestHead, TO_SERVICE))),
  },
  {
    name: `http1: read a response head of ${response.length} bytes`,
    run: repeating(() => parseResponseHead(response.latin1Slice(), GET)),
  },
  {
    name: 'http1: write it for the visitor, into a buffer',
    run: repeating(() => written.latin1Write(responseHeadFor(responseHead, TO_VISITOR).text)),
  },
  { name: 'http1: a body of 16 chunks of 64 KiB', run: repeating(chunksOf(16, 65536)) },
  { name: 'http1: a body of 1000 chunks of 40 bytes', run: repeating(chunksOf(1000, 40)) },
];
