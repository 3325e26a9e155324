// The origin's HTTP/1.1 service: `GET /<offset>/<bytes>` returns that many bytes of the pattern from the offset. No more of HTTP is
// supported, so that the origin stays cheaper than the measured programs; its requests have already passed an edge or nginx.
import { patternPiece, sendPattern } from './pattern.mjs';

/** Maximum size of a response that is a single prepared write. */
const SMALL_MAX_BYTES = 4096;
const SMALL_KEPT = 1024;
const HEAD_END = Buffer.from('\r\n\r\n');

const small = new Map();

const headOf = (bytes, close) =>
  `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${bytes}\r\n${close ? 'Connection: close\r\n' : ''}\r\n`;

function smallAnswer(offset, bytes, close) {
  const key = `${offset} ${bytes} ${close}`;
  let answer = small.get(key);
  if (answer === undefined) {
    answer = Buffer.concat([Buffer.from(headOf(bytes, close)), patternPiece(offset, bytes)]);
    if (small.size < SMALL_KEPT) small.set(key, answer);
  }
  return answer;
}

/** Returns the receiver for a connection's bytes, like the services of request.mjs, but from the first byte on. */
export function serveHttp(socket) {
  let rest = Buffer.alloc(0);
  let busy = false;
  const next = () => {
    while (!busy && !socket.destroyed) {
      const end = rest.indexOf(HEAD_END);
      if (end === -1) return;
      const head = rest.toString('latin1', 0, end + 2);
      rest = rest.subarray(end + HEAD_END.length);
      answer(head);
    }
  };
  const answer = (head) => {
    const asked = /^GET \/(\d{1,9})\/(\d{1,9}) HTTP\/1\.1\r\n/.exec(head);
    if (asked === null) return socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    const offset = Number(asked[1]);
    const bytes = Number(asked[2]);
    const close = /\r\nconnection: close\r\n/i.test(head);
    const done = () => {
      busy = false;
      if (close) socket.end();
      else next();
    };
    busy = true;
    if (bytes <= SMALL_MAX_BYTES) {
      socket.write(smallAnswer(offset, bytes, close));
      return done();
    }
    socket.write(headOf(bytes, close));
    sendPattern(socket, offset, bytes, done);
    return undefined;
  };
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    next();
  };
}
