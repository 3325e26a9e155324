// Finds a port that is free and stays free, from a range that no operating system assigns automatically, neither for port 0 nor for
// outgoing connections. A port obtained by binding to port 0 and released may be taken by a different program before its use.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Start of the range, below the ephemeral ports of Linux (32,768), macOS and Windows (49,152), and above the port blocks of apps/edge. */
const FIRST_PORT = 29_000;
const PORTS = 3700;

export const freePort = async (host = '127.0.0.1'): Promise<number> => {
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if ((await isFreeForTcp(host, port)) && (await isFreeForUdp(host, port))) return port;
  }
  throw new Error(`no port from ${FIRST_PORT} on is free`);
};

const isFreeForTcp = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });

const isFreeForUdp = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.once('error', () => resolve(false));
    socket.bind(port, host, () => socket.close(() => resolve(true)));
  });
