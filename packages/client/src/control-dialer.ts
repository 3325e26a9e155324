// Opens the control WebSocket: dial, upgrade, and a clear word about what went wrong. The key is not sent here.
import type { IncomingMessage } from 'node:http';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import WebSocket from 'ws';
import { certificateFault, codeOf, mayBeWrongKind, notAnEdge, reasonOf, unreachable } from './dial-faults.ts';
import { dialSocket } from './dial-socket.ts';
import type { Endpoint, ServerAddress } from './endpoint.ts';
import { CLIENT_LIMITS } from './limits.ts';

export interface ControlDialOptions<T> {
  readonly clock: Clock;
  readonly agent: string;
  readonly signal: AbortSignal;
  /** Called in the turn in which the socket opens, so that no message can come before its listener. `remoteAddress`: what the name led to. */
  readonly wrap: (socket: WebSocket, remoteAddress: string) => T;
}

/** Rejects with a Fault: CLIENT_SERVER_UNREACHABLE when trying again can help, another CLIENT_ code when it cannot. */
export const dialControl = async <T>(endpoint: Endpoint, options: ControlDialOptions<T>): Promise<T> => {
  const late = new AbortController();
  const seconds = WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS / 1000;
  const timer = options.clock.setTimeout(
    () => late.abort(unreachable(endpoint.address.text, `no answer within ${seconds} s`)),
    WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
  );
  const signal = AbortSignal.any([late.signal, options.signal]);
  try {
    const socket = await dialSocket(endpoint, { minTlsVersion: 'TLSv1.2', signal });
    return await upgrade(endpoint, socket, { ...options, signal });
  } catch (error) {
    throw await explain(endpoint, error);
  } finally {
    timer.cancel();
  }
};

const upgrade = <T>(endpoint: Endpoint, socket: Socket, options: ControlDialOptions<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const { address } = endpoint;
    // ws:// also over TLS: the socket below is ready, and the scheme would only choose how to dial.
    const webSocket = new WebSocket(`ws://${address.text}/_control`, {
      createConnection: () => socket,
      perMessageDeflate: false,
      maxPayload: WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES,
      headers: { 'user-agent': options.agent },
    });
    const abort = (): void => fail(options.signal.reason);
    const fail = (error: unknown): void => {
      options.signal.removeEventListener('abort', abort);
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
      resolve(options.wrap(webSocket, socket.remoteAddress ?? ''));
    });
  });

const answerFault = (server: string, response: IncomingMessage): Fault => {
  const status = response.statusCode ?? 0;
  const reason = `it answered HTTP ${status}`;
  // A proxy in front of an edge that restarts says 5xx; an edge never does.
  return status >= 500 || status === 429 || status === 408 ? unreachable(server, reason) : notAnEdge(server, reason);
};

/** What a person can act on, of an error on the way to the control plane. */
export const explain = async (endpoint: Endpoint, error: unknown): Promise<Fault> => {
  if (error instanceof Fault) return error;
  const server = endpoint.address.text;
  const certificate = certificateFault(server, error);
  if (certificate !== undefined) return certificate;
  if (!mayBeWrongKind(error)) {
    const handshake = error instanceof Error && /Sec-WebSocket|upgrade/i.test(error.message);
    return handshake ? notAnEdge(server, reasonOf(error)) : unreachable(server, reasonOf(error), error);
  }
  const kind = await probeKind(endpoint.address);
  const secure = endpoint.security.kind === 'tls';
  if (kind === 'tls' && !secure) return new Fault('CLIENT_SERVER_SPEAKS_TLS', { server });
  if (kind === 'http' && secure) return new Fault('CLIENT_SERVER_SPEAKS_PLAIN', { server });
  // A reset alone is what a dying edge looks like too.
  const garbled = /^(HPE_|EPROTO|ERR_SSL_)/.test(codeOf(error));
  if (!garbled) return unreachable(server, reasonOf(error), error);
  return notAnEdge(server, kind === 'other' ? 'it speaks neither HTTP nor TLS there' : reasonOf(error));
};

type PortKind = 'tls' | 'http' | 'other';

/** Asks a port which language it speaks after a handshake failed, so that the error names the setting to change. No key is sent. */
const probeKind = async (address: ServerAddress): Promise<PortKind> => {
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
