// Measures the bandwidth between this machine and the edge in both directions with /_speed of the control port, limited in bytes and time.
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Secret } from '@tunnel/runtime';
import { reasonOf } from '../network/dial-faults.ts';
import type { BandwidthFacts, Transfer } from './judge-quality.rules.ts';

/** Bytes sent and received to measure bandwidth, per direction. */
const DOCTOR_TRANSFER_BYTES = 8 * 1024 * 1024;
/** Maximum time per direction. Enough to measure a slow connection without the full transfer. */
const DOCTOR_TRANSFER_WITHIN_MS = 3000;

export interface SpeedOptions {
  /** Name of the server as host:port, for the Host header. */
  readonly server: string;
  readonly token: Secret;
  readonly clock: Clock;
  /** Opens a connection to the server. Called separately for every direction of the measurement. */
  readonly dial: (signal: AbortSignal) => Promise<Duplex>;
}

const CHUNK = Buffer.alloc(64 * 1024);

/** Responses of an edge without a speed test or with the limit reached. They do not mean a bad path. */
const NOT_OFFERED: Readonly<Record<number, string>> = {
  404: 'this edge has no speed test',
  426: 'this edge has no speed test',
  429: 'too many speed tests within a minute',
};

class NotOffered extends Error {}

export const measureBandwidth = async (options: SpeedOptions, signal: AbortSignal): Promise<BandwidthFacts> => {
  try {
    const down = await transfer(options, signal, fetchBytes);
    const up = await transfer(options, signal, sendBytes);
    return { state: 'measured', down, up };
  } catch (error) {
    if (error instanceof NotOffered) return { state: 'not-offered', why: error.message };
    return { state: 'failed', reason: reasonOf(error) };
  }
};

type Way = (begin: Begin, count: (bytes: number) => void) => Promise<void>;
type Begin = (method: 'GET' | 'POST', path: string) => ClientRequest;

/** Transfers until the last byte or the timeout. A partial transfer is enough for a measurement. */
const transfer = async (options: SpeedOptions, signal: AbortSignal, way: Way): Promise<Transfer> => {
  const { server, token, clock, dial } = options;
  const socket = await dial(signal);
  let bytes = 0;
  const since = clock.monotonic();
  const begin: Begin = (method, path) =>
    request({
      createConnection: () => socket,
      method,
      path,
      setHost: false,
      headers: { host: server, authorization: `Bearer ${token.reveal()}`, connection: 'close' },
    });
  const over = new Promise<void>((resolve) => {
    const timer = clock.setTimeout(resolve, DOCTOR_TRANSFER_WITHIN_MS);
    socket.once('close', () => timer.cancel());
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await Promise.race([way(begin, (more) => (bytes += more)), over]);
    if (bytes === 0) throw new Error(`no byte passed within ${DOCTOR_TRANSFER_WITHIN_MS / 1000} s`);
    return { bytes, ms: clock.monotonic() - since };
  } finally {
    socket.on('error', () => {});
    socket.destroy();
  }
};

const fetchBytes: Way = async (begin, count) => {
  const asked = begin('GET', `/_speed?bytes=${DOCTOR_TRANSFER_BYTES}`);
  asked.end();
  const response = await answerOf(asked);
  for await (const part of response as AsyncIterable<Buffer>) count(part.length);
};

const sendBytes: Way = async (begin, count) => {
  const asked = begin('POST', '/_speed');
  asked.setHeader('content-length', DOCTOR_TRANSFER_BYTES);
  const answer = answerOf(asked);
  // The server may reject the upload before reading the whole body.
  answer.catch(() => {});
  for (let left = DOCTOR_TRANSFER_BYTES; left > 0; left -= CHUNK.length) {
    const taken = await Promise.race([written(asked, CHUNK.subarray(0, Math.min(left, CHUNK.length))), answer]);
    if (taken !== undefined) break;
    count(Math.min(left, CHUNK.length));
  }
  asked.end();
  (await answer).resume();
};

const written = (asked: ClientRequest, bytes: Buffer): Promise<undefined> =>
  new Promise((resolve, reject) => {
    asked.write(bytes, (error) => (error ? reject(error) : resolve(undefined)));
  });

const answerOf = (asked: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    asked.once('error', reject);
    asked.once('response', (response) => {
      const status = response.statusCode ?? 0;
      if (status === 200) return resolve(response);
      response.resume();
      reject(
        NOT_OFFERED[status] === undefined
          ? new Error(`the edge responded with HTTP ${status}`)
          : new NotOffered(NOT_OFFERED[status]),
      );
    });
  });
