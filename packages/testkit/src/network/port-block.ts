// Public ports for one stack or edge that no other test has at the same time, whichever process runs it.
import { createServer, type Server } from 'node:net';

// Above the ephemeral ports of Linux, so that no outgoing connection sits on one; away from the ports of tests/repo.
const FIRST_PORT = 61_440;
const BLOCK_PORTS = 32;
const BLOCKS = 128;

export interface PortBlock {
  /** For servers that must come back on the same port. */
  readonly fixed: {
    readonly control: number;
    readonly api: number;
    readonly metrics: number;
    readonly http: number;
    readonly platform: number;
  };
  /** For `tcp_port_range`. */
  readonly from: number;
  readonly to: number;
  close(): Promise<void>;
}

/** The block belongs to whoever listens on its first port. */
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
