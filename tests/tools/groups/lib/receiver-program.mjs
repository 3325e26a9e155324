// A receiver of alerts, good or bad in one of three ways: receiver-program.mjs KIND HOST
// A process of its own, so that what it does costs whoever measures nothing. Tells its URL, and each alert it got.
import { createServer } from 'node:http';

const [kind, host] = process.argv.slice(2);

const answers = {
  good: (_, response) => response.writeHead(204).end(),
  /** Takes the request and never says anything. */
  silent: () => {},
  /** Hangs up as soon as the request is there. */
  resets: (request) => request.socket.resetAndDestroy(),
  /** Drips its head, a byte a second: never silent, never done. */
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
