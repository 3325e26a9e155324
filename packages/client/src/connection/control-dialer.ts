// Opens the control WebSocket: dials, upgrades, and explains failures. The API key is not sent here.

import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { isLoopbackHost } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import WebSocket from 'ws';
import {
  certificateFault,
  codeOf,
  lacksCertificate,
  mayBeWrongKind,
  notAnEdge,
  reasonOf,
  unreachable,
} from '../network/dial-faults.ts';
import { type ServerAddress } from '../network/endpoint.ts';
import { withinTime } from '../network/within-time.ts';
import { type DialOptions, dialSocket, dialTimeoutMs, type Endpoint } from './dial-socket.ts';

/** Timeout for the check, after a failed handshake, whether the server speaks TLS. */
export const KIND_PROBE_TIMEOUT_MS = 3000;

export interface ControlDialOptions<T> extends Pick<DialOptions, 'tlsSession'> {
  readonly clock: Clock;
  readonly agent: string;
  readonly signal: AbortSignal;
  /**
   * Called in the same turn in which the socket opens, so that no message arrives before its listener. `remoteAddress` is the server's
   * resolved address, empty behind a proxy.
   */
  readonly wrap: (socket: WebSocket, remoteAddress: string) => T;
}

/** Rejects with a Fault: CLIENT_SERVER_UNREACHABLE if a retry can help, otherwise another CLIENT_ code. */
export const dialControl = async <T>(endpoint: Endpoint, options: ControlDialOptions<T>): Promise<T> => {
  const late = new AbortController();
  const withinMs = dialTimeoutMs(endpoint, WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS);
  const timer = options.clock.setTimeout(
    () => late.abort(unreachable(endpoint.address.text, `no response within ${withinMs / 1000} s`)),
    withinMs,
  );
  const signal = AbortSignal.any([late.signal, options.signal]);
  try {
    const socket = await dialSocket(endpoint, { ...options, minTlsVersion: 'TLSv1.2', signal, keepsTlsSession: true });
    return await upgrade(endpoint, socket, { ...options, signal });
  } catch (error) {
    throw await explain(endpoint, options.clock, error);
  } finally {
    timer.cancel();
  }
};

const upgrade = <T>(endpoint: Endpoint, socket: Socket, options: ControlDialOptions<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const { address } = endpoint;
    // The URL says ws:// even over TLS: the socket is already connected, and the scheme would only choose how to dial.
    const webSocket = new WebSocket(`ws://${address.text}/_control`, {
      createConnection: () => socket,
      perMessageDeflate: false,
      maxPayload: WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES,
      headers: { 'user-agent': options.agent },
    });
    const abort = (): void => fail(options.signal.reason);
    const fail = (error: unknown): void => {
      options.signal.removeEventListener('abort', abort);
      options.tlsSession?.forget();
      webSocket.on('error', () => {});
      webSocket.terminate();
      socket.destroy();
      reject(error as Error);
    };
    options.signal.addEventListener('abort', abort, { once: true });
    webSocket.once('error', fail);
    webSocket.once('unexpected-response', (_request, response) => fail(answerFault(address.text, response)));
    webSocket.once('open', () => {
      options.signal.removeEventListener('abort', abort);
      webSocket.off('error', fail);
      resolve(options.wrap(webSocket, datagramAddress(endpoint, socket)));
    });
  });

/**
 * Returns the address for datagrams. Empty behind a proxy, because proxies do not forward datagrams, except for a server on this machine,
 * which is reachable without the proxy.
 */
const datagramAddress = ({ address, proxy }: Endpoint, socket: Socket): string => {
  if (proxy === null) return socket.remoteAddress ?? '';
  if (!isLoopbackHost(address.host)) return '';
  return isIP(address.host) === 0 ? '127.0.0.1' : address.host;
};

const answerFault = (server: string, response: IncomingMessage): Fault => {
  const status = response.statusCode ?? 0;
  const reason = `the response was HTTP ${status}`;
  // A proxy in front of a restarting edge sends a 5xx; an edge never does.
  return status >= 500 || status === 429 || status === 408 ? unreachable(server, reason) : notAnEdge(server, reason);
};

/** Converts an error on the way to the control plane into a Fault with advice for the user. */
export const explain = async (endpoint: Endpoint, clock: Clock, error: unknown): Promise<Fault> => {
  if (error instanceof Fault) return error;
  const server = endpoint.address.text;
  const certificate = certificateFault(server, error);
  if (certificate !== undefined) return certificate;
  if (lacksCertificate(error)) return unreachable(server, 'the server has no certificate for this name yet', error);
  if (!mayBeWrongKind(error)) {
    const handshake = error instanceof Error && /Sec-WebSocket|upgrade/i.test(error.message);
    return handshake ? notAnEdge(server, reasonOf(error)) : unreachable(server, reasonOf(error), error);
  }
  const kind = await probeKind(endpoint, clock);
  const secure = endpoint.security.kind === 'tls';
  if (kind === 'tls' && !secure) return new Fault('CLIENT_SERVER_SPEAKS_TLS', { server });
  if (kind === 'http' && secure) return new Fault('CLIENT_SERVER_SPEAKS_PLAIN', { server });
  // A connection reset is not enough evidence: a crashing edge looks the same.
  const garbled = /^(HPE_|EPROTO|ERR_SSL_)/.test(codeOf(error));
  if (!garbled) return unreachable(server, reasonOf(error), error);
  return notAnEdge(server, kind === 'other' ? 'the port speaks neither HTTP nor TLS' : reasonOf(error));
};

type PortKind = 'tls' | 'http' | 'other';

/**
 * Finds out after a failed handshake whether a port speaks TLS or HTTP, so that the error can name the setting to change. No key is sent.
 */
const probeKind = async (endpoint: Endpoint, clock: Clock): Promise<PortKind> => {
  if (await speaksTls(endpoint, clock)) return 'tls';
  return (await speaksHttp(endpoint, clock)) ? 'http' : 'other';
};

const probe = (endpoint: Endpoint, clock: Clock): Promise<Socket> =>
  withinTime(clock, KIND_PROBE_TIMEOUT_MS, new Error('no answer'), (signal) =>
    dialSocket(endpoint, { clock, minTlsVersion: 'TLSv1.2', signal }),
  );

const speaksTls = async (endpoint: Endpoint, clock: Clock): Promise<boolean> => {
  try {
    // The server's certificate is not verified, because nothing is sent on this test connection.
    const security = { kind: 'tls', ca: undefined, verify: false } as const;
    (await probe({ ...endpoint, security }, clock)).destroy();
    return true;
  } catch {
    return false;
  }
};

const speaksHttp = async (endpoint: Endpoint, clock: Clock): Promise<boolean> => {
  try {
    const security = { kind: 'plain', loopbackOnly: false } as const;
    return await answersHttp(await probe({ ...endpoint, security }, clock), endpoint.address, clock);
  } catch {
    return false;
  }
};

const answersHttp = (socket: Socket, { text }: ServerAddress, clock: Clock): Promise<boolean> =>
  new Promise((resolve) => {
    const answer = (yes: boolean): void => {
      late.cancel();
      socket.destroy();
      resolve(yes);
    };
    const late = clock.setTimeout(() => answer(false), KIND_PROBE_TIMEOUT_MS);
    socket.write(`GET / HTTP/1.1\r\nHost: ${text}\r\nConnection: close\r\n\r\n`);
    socket.once('data', (bytes) => answer(bytes.toString('latin1', 0, 7) === 'HTTP/1.'));
    socket.on('error', () => answer(false));
    socket.on('close', () => answer(false));
  });
