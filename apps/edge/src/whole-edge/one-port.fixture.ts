// An edge with or without a certificate, and connections to its ports. Used by tests only.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

export interface OnePortStage {
  readonly edge: Edge;
  readonly http: number;
  readonly https: number;
  readonly control: number;
  readonly metrics: number;
  /** Opens a connection. Later errors of the socket are ignored. */
  dial(port: number, localAddress?: string): Promise<Socket>;
  dialTls(port: number, ALPNProtocols: readonly string[]): Promise<TLSSocket>;
  close(): Promise<void>;
}

interface StageOptions {
  /** Settings of [server] and [limits] that replace the defaults. */
  readonly server?: object;
  readonly limits?: object;
  readonly tls?: boolean;
}

export const openOnePort = async ({
  server = {},
  limits = {},
  tls = true,
}: StageOptions = {}): Promise<OnePortStage> => {
  const directory = await temporaryDirectory();
  const cert_path = join(directory.path, 'cert.pem');
  const key_path = join(directory.path, 'key.pem');
  const { cert, key } = testCertificate();
  await Promise.all([writeFile(cert_path, cert), writeFile(key_path, key)]);
  const ports = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, https_port: 0 };
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { ...ports, domain: 'edge.test', ...server },
      limits: { tcp_port_range: [30_100, 30_999], ...limits },
      ...(tls ? { tls: { cert_path, key_path } } : {}),
    },
  });
  const logger = createLogger({ level: 'silent', format: 'json' });
  const edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
  await edge.start();
  const { addresses } = edge;
  const sockets: Socket[] = [];
  const opened = async <S extends Socket>(socket: S, event: string): Promise<S> => {
    sockets.push(socket.on('error', () => {}));
    await once(socket, event);
    return socket;
  };
  return {
    edge,
    http: addresses.http.port,
    https: addresses.https?.port ?? 0,
    control: addresses.control.port,
    metrics: addresses.metrics.port,
    dial: (port, localAddress = '127.0.0.1') => opened(connect({ port, host: '127.0.0.1', localAddress }), 'connect'),
    dialTls: (port, names) =>
      opened(
        connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: [...names] }),
        'secureConnect',
      ),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await edge.stop({ drainMs: 0 });
      await directory.close();
    },
  };
};
