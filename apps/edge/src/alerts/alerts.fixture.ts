// Fixtures for alerts: receivers on real sockets, a log kept in memory, and a sample alert.
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Logger, Secret, systemClock } from '@tunnel/runtime';
import { renewedCertificate } from '@tunnel/testkit';
import type { ZeroHealthyAlert } from './alert-message.ts';
import { AlertSender, type AlertSenderOptions } from './alert-sender.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  readonly port: number;
  readonly received: readonly Received[];
  close(): Promise<void>;
}

/** Starts a receiver that records every request and then responds with `answer`, by default with status 204. */
export const startReceiver = async (
  options: { readonly answer?: RequestListener; readonly isTls?: boolean } = {},
): Promise<Receiver> => {
  const received: Received[] = [];
  const answer: RequestListener = options.answer ?? ((_request, response) => response.writeHead(204).end());
  const listener: RequestListener = (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      received.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body });
      answer(request, response);
    });
  };
  const server: Server =
    options.isTls === true ? createTlsServer(renewedCertificate(), listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    received,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};

export interface MemoryLog {
  readonly logger: Logger;
  readonly lines: readonly Record<string, unknown>[];
  /** All log lines as one text, for searching. */
  readonly text: string;
}

export const memoryLog = (): MemoryLog => {
  const lines: Record<string, unknown>[] = [];
  const keep = (level: string) => (fields: object, message: string) => void lines.push({ level, message, ...fields });
  const logger = { info: keep('info'), warn: keep('warn'), error: keep('error'), debug: keep('debug') };
  return {
    logger: logger as unknown as Logger,
    lines,
    get text() {
      return JSON.stringify(lines);
    },
  };
};

export const alertOf = (tenantUrls: readonly string[], rest: Partial<ZeroHealthyAlert> = {}): ZeroHealthyAlert => ({
  protocol: 'http',
  label: 'web',
  groupName: 'Web pool',
  keyHashShort: '9f86d081',
  memberCount: 3,
  at: Date.UTC(2026, 10, 15, 6),
  account: 'account alice',
  groupId: 'grp_1',
  tenantUrls,
  ...rest,
});

export const senderOf = (rest: Partial<AlertSenderOptions> = {}): AlertSender =>
  new AlertSender({
    operatorUrl: '',
    allowPrivate: true,
    secret: new Secret(''),
    regionId: 'eu-1',
    version: '1.2.3',
    clock: systemClock,
    logger: memoryLog().logger,
    // Rates high enough never to limit an alert; tests of the budgets set real rates.
    rates: { perGroup: 1e9, perAccount: 1e9, perHostOfAccount: 1e9, perHost: 1e9 },
    ...rest,
  });
