// A port that is free now and stays so: from where no system takes one by itself, be it for port 0 or for an outgoing connection.
// One that was got by port 0 and given back may be somebody else's by the time it is used.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Below the ephemeral ports of Linux (32,768), macOS and Windows (49,152), and above the blocks of apps/edge. */
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
