// Between wrk and the edge: passes every byte on and sees what wrk only counts, which is how far each failed request had come.
// A process of its own: watching-relay.mjs EDGE_PORT. Tells its port, and its counts when it is asked.
import { connect, createServer } from 'node:net';
import { ResponseWatch } from './response-watch.mjs';

const edgePort = Number(process.argv[2]);

const counts = {
  connections: 0,
  /** Whole responses by status, or by the code of the edge's own. */
  answers: {},
  /** The connection ended before the first byte of the response: a failed request. */
  failed: 0,
  /** It ended after the response had begun. */
  cut: 0,
  /** It ended between two requests, and the response before had not said so. */
  closedUnsaid: 0,
  /** The edge took no connection. */
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
