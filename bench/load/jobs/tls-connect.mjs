// A TLS connection per visit: connect, a full handshake, close. Host names rotate: n0.localhost, n1.localhost, …
import { connect, createSecureContext } from 'node:tls';
import { percentile } from '../../lib/statistics.mjs';
import { connections as open } from '../connection.mjs';

// A shared context, because the visitors' cost is not measured. Without tickets, each handshake is a full handshake.
const secureContext = createSecureContext();

/** @param {{ concurrency: number, names: number, warmUpConnections: number, connections: number }} parameters */
export async function tlsConnect(address, { concurrency, names, warmUpConnections, connections }, ready) {
  await connectAll(address, { concurrency, names, count: warmUpConnections });
  await ready();
  const begin = performance.now();
  const times = Float64Array.from(await connectAll(address, { concurrency, names, count: connections })).sort();
  return {
    seconds: (performance.now() - begin) / 1000,
    connections: times.length,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}

async function connectAll(address, { concurrency, names, count }) {
  const times = [];
  let begun = 0;
  const worker = async () => {
    while (begun < count) {
      begun += 1;
      times.push(await connectOnce(address, `n${begun % names}.localhost`));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return times;
}

/** Connects once and resolves after the peer has closed as well, so that the cost of closing is measured. */
function connectOnce({ host, port }, servername) {
  const begin = performance.now();
  return new Promise((resolve, reject) => {
    const terms = { servername, secureContext, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] };
    const socket = connect({ host, port, ...terms }, () => {
      const tookMs = performance.now() - begin;
      if (socket.isSessionReused()) reject(new Error('a handshake was not a full one'));
      socket.resume().end();
      socket.once('close', () => resolve(tookMs));
    });
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.once('error', reject);
  });
}
