// The local service behind every path: a port with four services (request.mjs), HTTP and datagrams, and a second port with the services
// over TLS. A separate process, controlled with messages.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { CERTIFICATE, KEY } from '../paths/certificate.mjs';
import { serveDatagrams } from './datagram-service.mjs';
import { serveHttp } from './http-service.mjs';
import { PatternCheck, sendPattern } from './pattern.mjs';
import { decodeRequest, encodeVerdict, REQUEST_BYTES, SERVICE, SMALL_BYTES } from './request.mjs';

/** Services by number. Each takes the socket and the request, and returns the receiver for the bytes that follow. */
const SERVICES = {
  [SERVICE.echo]: (socket) => (chunk) => socket.write(chunk),
  [SERVICE.source]: source,
  [SERVICE.sink]: sink,
  [SERVICE.answer]: answer,
};

/** The letter G of GET. */
const HTTP_FIRST_BYTE = 0x47;

const sources = new Set();
let sentBefore = 0;

function source(socket, { offset, bytes }) {
  const sending = sendPattern(socket, offset, bytes, () => socket.end());
  sources.add(sending);
  socket.once('close', () => {
    sources.delete(sending);
    sentBefore += sending.sent;
  });
  return () => {};
}

function sink(socket, { offset, bytes }) {
  const check = new PatternCheck(offset);
  return (chunk) => {
    check.take(chunk, chunk.length);
    if (check.bytes >= bytes) socket.end(encodeVerdict(check.right && check.bytes === bytes, check.bytes));
  };
}

function answer(socket) {
  const got = Buffer.alloc(SMALL_BYTES);
  let have = 0;
  return (chunk) => {
    have += chunk.copy(got, have);
    if (have === SMALL_BYTES) socket.end(got);
  };
}

function serve(socket) {
  let take = null;
  let head = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    if (take !== null) return take(chunk);
    if (head.length === 0 && chunk[0] === HTTP_FIRST_BYTE) {
      take = serveHttp(socket);
      return take(chunk);
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < REQUEST_BYTES) return undefined;
    const request = decodeRequest(head);
    const service = request && SERVICES[request.service];
    if (!service) return socket.destroy();
    take = service(socket, request);
    return head.length > REQUEST_BYTES ? take(head.subarray(REQUEST_BYTES)) : undefined;
  });
}

/** Returns the number of bytes that all sources have handed to the kernel. The number stops changing when every reader is stalled. */
function bytesSent() {
  let sum = sentBefore;
  for (const { sent } of sources) sum += sent;
  return sum;
}

const server = createServer({ noDelay: true }, serve);
const secure = createTlsServer({ noDelay: true, cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) }, serve);
process.on('message', () => process.send({ type: 'sent', bytes: bytesSent() }));
process.on('disconnect', () => process.exit());
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  serveDatagrams(server.address().port);
  secure.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
    process.send({ type: 'listening', port: server.address().port, tlsPort: secure.address().port });
  });
});
