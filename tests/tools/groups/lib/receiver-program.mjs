// A receiver of alerts that works, or fails in one of three ways: receiver-program.mjs KIND HOST
// A separate process, so that its work does not affect measurements. Sends its URL and each received alert to its parent.
import { createServer } from 'node:http';

const [kind, host] = process.argv.slice(2);

const answers = {
  good: (_, response) => response.writeHead(204).end(),
  /** Reads the request and never answers. */
  silent: () => {},
  /** Resets the connection as soon as the request has arrived. */
  resets: (request) => request.socket.resetAndDestroy(),
  /** Sends the response head at a byte per second, and never finishes. */
  slow: (request) => {
    const letters = [...'HTTP/1.1 200 OK\r\nx-slow: and so on and on\r\n\r\n'];
    const drip = setInterval(() => request.socket.write(letters.shift() ?? '.'), 1000);
    request.socket.once('close', () => clearInterval(drip));
  },
};

const server = createServer((request, response) => {
  const pieces = [];
  request.on('error', () => {});
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    process.send({ type: 'alert', body: JSON.parse(Buffer.concat(pieces).toString('utf8')) });
    answers[kind](request, response);
  });
});
server.on('connection', (socket) => socket.on('error', () => {}));
process.on('disconnect', () => process.exit());
server.listen(0, host, () => process.send({ type: 'listening', port: server.address().port }));
