// Receivers of alerts: one that answers as it should, and three that do what bad ones do.
import { once } from 'node:events';
import { createServer } from 'node:http';

const KINDS = {
  /** Answers 204 and keeps the body. */
  good: (_, response) => void response.writeHead(204).end(),
  /** Takes the request and never says anything. */
  silent: () => {},
  /** Hangs up as soon as the request is there. */
  resets: (request) => void request.socket.resetAndDestroy(),
  /** Drips its head, a byte a second: never silent, never done. */
  slow: (request) => {
    const words = [...'HTTP/1.1 200 OK\r\nx-slow: and so on and on\r\n\r\n'];
    const drip = setInterval(() => request.socket.write(words.shift() ?? '.'), 1000);
    request.socket.once('close', () => clearInterval(drip));
  },
};

/** A host of its own on loopback, because the edge bounds what it sends to one host. */
export async function startReceiver(kind, host) {
  const bodies = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('error', () => {});
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(pieces).toString('utf8')));
      KINDS[kind](request, response);
    });
  });
  server.on('connection', (socket) => socket.on('error', () => {}));
  server.listen(0, host);
  await once(server, 'listening');
  return {
    kind,
    url: `http://${host}:${server.address().port}/alert`,
    /** The alerts that came, read. */
    bodies,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
