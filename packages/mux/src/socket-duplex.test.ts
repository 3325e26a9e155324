import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { eventually, RecordingReader } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { adoptSocket } from './socket-duplex.ts';

const CUT = { code: 'cancelled', text: 'cut off' } as const;

let server: Server;
let accepted: Socket;
let peer: Socket;
let peerErrors: string[];
let isClosed: boolean;

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  [accepted] = (await once(server, 'connection')) as [Socket];
  peerErrors = [];
  peer.on('error', (error: NodeJS.ErrnoException) => peerErrors.push(String(error.code)));
  peer.resume();
  isClosed = false;
  accepted.on('close', () => {
    isClosed = true;
  });
});
afterEach(() => {
  peer.destroy();
  server.close();
});

/** Node tells of a close when the descriptor is given back, and not before. */
const descriptorIsGivenBack = () => eventually(() => expect(isClosed).toBe(true));

it('a reset right behind an end gives the descriptor back, and the peer sees that it was cut off', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
  peer.write('anybody there?');
  await eventually(() => expect(peerErrors).toHaveLength(1));
  expect(peerErrors[0]).toMatch(/^(ECONNRESET|EPIPE)$/);
});

it('so does one behind an end that still has bytes to send', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  end.write(Buffer.alloc(100), 0, 100, true);
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
});

it('so does one that comes while the end of the other side does', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  peer.end();
  await eventually(() => expect(accepted.readableEnded).toBe(true));
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
});
