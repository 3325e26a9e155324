// Opens one carrier: a separate connection to the control port, upgraded with a single-use token.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Fault } from '@tunnel/errors';
import { type Carrier, createCarrier } from '@tunnel/mux';
import { ALPN_TUNNEL, CARRIER_PROTOCOL } from '@tunnel/protocol';
import { reasonOf, unreachable } from '../network/dial-faults.ts';
import { type DialOptions, dialSocket, dialTimeoutMs, type Endpoint } from './dial-socket.ts';
import { readUpgradeHead } from './upgrade-head.ts';

/** Timeout for connecting, the TLS handshake and the upgrade of one carrier together. */
const CARRIER_DIAL_TIMEOUT_MS = 10_000;

export interface CarrierDialOptions extends Pick<DialOptions, 'clock' | 'signal' | 'tlsSession'> {
  readonly agent: string;
  readonly path: string;
  readonly token: string;
}

export const dialCarrier = async (endpoint: Endpoint, options: CarrierDialOptions): Promise<Carrier> => {
  const late = new AbortController();
  const withinMs = dialTimeoutMs(endpoint, CARRIER_DIAL_TIMEOUT_MS);
  const timer = options.clock.setTimeout(
    () => late.abort(new Error(`no response within ${withinMs / 1000} s`)),
    withinMs,
  );
  const signal = AbortSignal.any([late.signal, options.signal]);
  const server = endpoint.address.text;
  try {
    const socket = await dialSocket(endpoint, { ...options, minTlsVersion: 'TLSv1.2', signal });
    refuseOldTls(socket);
    socket.write(requestHead(server, options));
    const head = await readUpgradeHead(socket, signal).catch((error: unknown) => {
      options.tlsSession?.forget();
      throw error;
    });
    if (head.status === 101 && head.headers.get('upgrade')?.toLowerCase() === CARRIER_PROTOCOL) {
      return createCarrier(socket, head.rest);
    }
    socket.destroy();
    if (head.status === 401) throw new Fault('CARRIER_TOKEN_INVALID');
    throw unreachable(server, `the carrier was answered with HTTP ${head.status}`);
  } catch (error) {
    throw error instanceof Fault ? error : unreachable(server, `carrier: ${reasonOf(error)}`, error);
  } finally {
    timer.cancel();
  }
};

/**
 * Rejects carriers below TLS 1.3 if the edge itself terminates TLS (the ALPN name was accepted). Behind a front or a company proxy an older
 * version is accepted, as on the control connection.
 */
const refuseOldTls = (socket: Socket): void => {
  if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== ALPN_TUNNEL) return;
  const version = socket.getProtocol();
  if (version === 'TLSv1.3') return;
  socket.destroy();
  throw new Error(`carriers need TLS 1.3, but the connection uses ${version}`);
};

const requestHead = (server: string, options: CarrierDialOptions): string =>
  [
    `GET ${options.path} HTTP/1.1`,
    `Host: ${server}`,
    'Connection: Upgrade',
    `Upgrade: ${CARRIER_PROTOCOL}`,
    `Authorization: Bearer ${options.token}`,
    `User-Agent: ${options.agent}`,
    '\r\n',
  ].join('\r\n');
