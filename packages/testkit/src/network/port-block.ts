// Claims a block of public ports for one stack or edge. No other test has the same ports at the same time, even in a different process.
import { createServer, type Server } from 'node:net';

// Above the ephemeral ports of Linux, so that no outgoing connection occupies a port, and outside the ports of tests/repo.
const FIRST_PORT = 61_440;
const BLOCK_PORTS = 32;
const BLOCKS = 128;

export interface PortBlock {
  /** Ports for servers that must restart on the same port. */
  readonly fixed: {
    readonly control: number;
    readonly api: number;
    readonly metrics: number;
    readonly http: number;
    readonly platform: number;
  };
  /** First port for `tcp_port_range`. */
  readonly from: number;
  readonly to: number;
  close(): Promise<void>;
}

/** Claims a free block by listening on the first port of the block. */
export const claimPortBlock = async (): Promise<PortBlock> => {
  for (let tries = 0; tries < BLOCKS; tries += 1) {
    const first = FIRST_PORT + BLOCK_PORTS * Math.floor(Math.random() * BLOCKS);
    const guard = await listenOn(first);
    if (guard === null) continue;
    return {
      fixed: { control: first + 1, api: first + 2, metrics: first + 3, http: first + 4, platform: first + 5 },
      from: first + 6,
      to: first + BLOCK_PORTS - 1,
      close: () => new Promise((resolve) => guard.close(() => resolve())),
    };
  }
  throw new Error('every block of ports is taken');
};

const listenOn = (port: number): Promise<Server | null> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
