// A carrier upgrade written by hand, and a client that echoes the streams on the carrier. Used by tests only.

import { connect, type Socket } from 'node:net';
import { connect as connectTls, type SecureVersion } from 'node:tls';
import { type Carrier, createCarrier, MuxSession, processBudget } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import { rethrow } from '@tunnel/testkit';

export interface UpgradeAnswer {
  readonly status: number;
  readonly text: string;
  readonly socket: Socket;
  readonly rest: Buffer;
}

export interface UpgradeRequest {
  readonly path?: string;
  readonly upgrade?: string;
  readonly token?: string;
  readonly host?: string;
  readonly tls?: { readonly minVersion: SecureVersion; readonly maxVersion: SecureVersion; readonly alpn?: string };
}

/** Sends an upgrade request and reads the response head. The response of a refusal is read to its end. */
export const askUpgrade = (port: number, request: UpgradeRequest): Promise<UpgradeAnswer> =>
  new Promise((resolve, reject) => {
    const socket = dial(port, request);
    let seen = Buffer.alloc(0);
    const answer = (): void => {
      const end = seen.indexOf('\r\n\r\n');
      const head = seen.subarray(0, end).toString('latin1');
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
      resolve({ status, text: seen.toString('utf8'), socket, rest: seen.subarray(end + 4) });
    };
    const onData = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk]);
      if (!seen.includes('\r\n\r\n') || !seen.toString('latin1', 0, 12).endsWith('101')) return;
      socket.pause();
      socket.off('data', onData).off('end', answer).off('error', reject);
      answer();
    };
    socket.on('data', onData).on('end', answer).on('error', reject);
    socket.write(
      [
        `GET ${request.path ?? '/_carrier'} HTTP/1.1`,
        `Host: ${request.host ?? 'edge.test'}`,
        'Connection: Upgrade',
        `Upgrade: ${request.upgrade ?? 'tunnel-carrier/1'}`,
        ...(request.token === undefined ? [] : [`Authorization: Bearer ${request.token}`]),
        '\r\n',
      ].join('\r\n'),
    );
  });

const dial = (port: number, { tls }: UpgradeRequest): Socket => {
  if (tls === undefined) return connect({ host: '127.0.0.1', port, noDelay: true });
  const { minVersion, maxVersion, alpn } = tls;
  const ALPNProtocols = alpn === undefined ? {} : { ALPNProtocols: [alpn] };
  return connectTls({ host: '127.0.0.1', port, minVersion, maxVersion, rejectUnauthorized: false, ...ALPNProtocols });
};

export const openCarrier = async (port: number, token: string, more: UpgradeRequest = {}): Promise<Carrier> => {
  const { status, socket, rest } = await askUpgrade(port, { token, ...more });
  if (status !== 101) throw new Error(`answered with ${status}`);
  return createCarrier(socket, rest);
};

/** Creates the client’s side of a session with a local service that echoes all bytes. */
export const echoMux = (): MuxSession & { readonly visitors: string[] } => {
  const visitors: string[] = [];
  const mux = new MuxSession({
    role: 'client',
    budget: processBudget(),
    clock: systemClock,
    handlers: {
      onCarrierLost: () => {},
      report: rethrow,
      onStream: (stream, head) => {
        visitors.push(head.visitor);
        stream.accept();
        stream.read({
          onData: (bytes, start, end) => stream.write(Buffer.from(bytes.subarray(start, end)), 0, end - start, true),
          onDrain: () => stream.resume(),
          onEnd: () => stream.end(),
          onReset: () => {},
          abandon: rethrow,
        });
      },
    },
  });
  return Object.assign(mux, { visitors });
};
