// Asks a port which language it speaks after a handshake failed, so that the error names the setting to change. No key is sent.
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { CLIENT_LIMITS } from './limits.ts';
import type { ServerAddress } from './server-address.ts';

export type PortKind = 'tls' | 'http' | 'other';

export const probeKind = async (address: ServerAddress): Promise<PortKind> => {
  if (await speaksTls(address)) return 'tls';
  return (await speaksHttp(address)) ? 'http' : 'other';
};

const speaksTls = ({ host, port }: ServerAddress): Promise<boolean> =>
  // The certificate does not matter here: nothing is sent on this connection.
  ask(connectTls({ host, port, rejectUnauthorized: false }), (socket, answer) => {
    socket.once('secureConnect', () => answer(true));
  });

const speaksHttp = (address: ServerAddress): Promise<boolean> =>
  ask(connectPlain({ host: address.host, port: address.port }), (socket, answer) => {
    socket.once('connect', () => socket.write(`GET / HTTP/1.1\r\nHost: ${address.text}\r\nConnection: close\r\n\r\n`));
    socket.once('data', (bytes) => answer(bytes.toString('latin1', 0, 7) === 'HTTP/1.'));
  });

const ask = (socket: Socket, listen: (socket: Socket, answer: (yes: boolean) => void) => void): Promise<boolean> =>
  new Promise((resolve) => {
    const answer = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    listen(socket, answer);
    socket.setTimeout(CLIENT_LIMITS.KIND_PROBE_TIMEOUT_MS, () => answer(false));
    socket.on('error', () => answer(false));
    socket.on('close', () => answer(false));
  });
