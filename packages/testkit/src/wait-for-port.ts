// Resolves once something accepts connections on the port.
import { connect } from 'node:net';
import { type EventuallyOptions, eventually } from './eventually.ts';

export const waitForPort = (port: number, options: EventuallyOptions & { host?: string } = {}): Promise<void> =>
  eventually(() => tryToConnect(options.host ?? '127.0.0.1', port), options);

const tryToConnect = (host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
