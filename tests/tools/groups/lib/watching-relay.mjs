// A relay between wrk and the edge that forwards every byte and records how far each failed request had progressed, because wrk only
// counts failures.
// A separate process: watching-relay.mjs EDGE_PORT. Sends its port to the parent, and its counts on request.
import { connect, createServer } from 'node:net';
import { ResponseWatch } from './response-watch.mjs';

const edgePort = Number(process.argv[2]);

const counts = {
  connections: 0,
  /** Complete responses by status, or by error code for responses of the edge itself. */
  answers: {},
  /** Failed requests: the connection ended before the first byte of the response. */
  failed: 0,
  /** Connections that ended after the response had begun. */
  cut: 0,
  /** Connections that ended between two requests without an announcement in the previous response. */
  closedUnsaid: 0,
  /** Connections that the edge did not accept. */
  refused: 0,
  odd: [],
};

function relay(visitor) {
  counts.connections += 1;
  let isOver = false;
  let isConnected = false;
  const watch = new ResponseWatch(({ status, error }) => {
    const kind = error ?? String(status);
    counts.answers[kind] = (counts.answers[kind] ?? 0) + 1;
  });
  const edge = connect({ port: edgePort, host: '127.0.0.1', noDelay: true }, () => {
    isConnected = true;
  });
  const end = (who) => {
    if (isOver) return;
    isOver = true;
    if (who === 'edge') judge(watch, isConnected);
    edge.destroy();
    visitor.destroy();
  };
  visitor.on('data', (bytes) => {
    watch.sent(bytes);
    edge.write(bytes);
  });
  edge.on('data', (bytes) => {
    try {
      watch.came(bytes);
    } catch (error) {
      counts.odd.push(error.message);
    }
    visitor.write(bytes);
  });
  for (const [who, socket] of [
    ['edge', edge],
    ['visitor', visitor],
  ]) {
    socket.on('error', () => {});
    socket.on('end', () => end(who));
    socket.on('close', () => end(who));
  }
}

function judge({ awaited, begun, saidClose }, isConnected) {
  if (!isConnected) counts.refused += 1;
  else if (begun > 0) counts.cut += 1;
  else if (awaited > 0) counts.failed += 1;
  else if (!saidClose) counts.closedUnsaid += 1;
}

process.on('message', () => process.send({ type: 'counts', counts }));
process.on('disconnect', () => process.exit());
const server = createServer({ noDelay: true }, relay);
server.listen(0, '127.0.0.1', () => process.send({ type: 'listening', port: server.address().port }));
