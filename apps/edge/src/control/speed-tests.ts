// Serves `/_speed`: a client measures its path to the edge by downloading (GET) and uploading (POST) bytes. The bytes are neither billed
// nor captured. Requests need an API key, and bytes are limited per account and minute. At most one chunk is queued for sending; received
// bytes are discarded.

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { PeerCertificate } from 'node:tls';
import { Fault } from '@tunnel/errors';
import type { AcceptedConnection, ConnectionGate } from '@tunnel/http-shell';
import { isSecured, type ReportInternalError } from '@tunnel/mux';
import { SlidingWindows } from '@tunnel/rules/rate';
import { type Owner, ownerKey } from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import type { AuthFailures } from './authentication.ts';
import { SPEED_TIMEOUT_MS } from './limits.ts';

/** Maximum of bytes per request and direction. A fast path needs about a second for it. */
export const SPEED_MAX_BYTES = 16 * 1024 * 1024;
/**
 * Maximum of bytes per account and minute: enough for a few measurements, too little to misuse the edge for transfers.
 * @limit tunnels: Speed tests (`tunnel doctor`), bytes per account and minute | `CONTROL_SPEED_LIMIT`
 */
const SPEED_BYTES_PER_MINUTE = 64 * 1024 * 1024;
/** Time window for SPEED_BYTES_PER_MINUTE, the limit of speed tests. */
export const SPEED_WINDOW_MS = 60_000;
/** Chunk size. The next chunk is sent when the previous chunk has left. */
const SPEED_CHUNK_BYTES = 64 * 1024;

/** Byte limit per account. Bytes are counted per second and forgotten after a minute. */
const SPENT = {
  perWindow: SPEED_BYTES_PER_MINUTE,
  windowMs: SPEED_WINDOW_MS + 1000,
  togetherMs: 1000,
  keys: 10_000,
};

/** Data sent repeatedly in a speed test. Random bytes, so that no proxy can compress them. */
const PIECE = randomBytes(SPEED_CHUNK_BYTES);
const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', connection: 'close' };
const BYTES = { ...TEXT, 'content-type': 'application/octet-stream' };
const JSON_TEXT = { ...TEXT, 'content-type': 'application/json' };

export interface SpeedTestsOptions {
  readonly backend: Pick<Backend, 'verifyKey'>;
  readonly failures: AuthFailures;
  readonly gate: Pick<ConnectionGate, 'identify'>;
  readonly clock: Clock;
  readonly report: ReportInternalError;
}

export class SpeedTests {
  readonly #options: SpeedTestsOptions;
  readonly #spent = new SlidingWindows(SPENT);

  constructor(options: SpeedTestsOptions) {
    this.#options = options;
  }

  /** Serves a speed test. Rejected API keys are counted for `address`. */
  serve(request: IncomingMessage, response: ServerResponse, accepted: AcceptedConnection, address: string): void {
    const { clock, report } = this.#options;
    // Cuts off a speed test if its client neither reads nor sends.
    const deadline = clock.setTimeout(() => request.socket.destroy(), SPEED_TIMEOUT_MS);
    response.on('close', () => deadline.cancel());
    // Errors are ignored: the close event already handles disconnects.
    for (const half of [request, response]) half.on('error', () => {});
    this.#run(request, response, accepted, address).catch((error: unknown) => {
      if (request.socket.destroyed) return;
      if (error instanceof Fault) return refuse(request, response, error);
      report(error, 'speed.request');
      request.socket.destroy();
    });
  }

  async #run(
    request: IncomingMessage,
    response: ServerResponse,
    accepted: AcceptedConnection,
    address: string,
  ): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'POST') {
      response.writeHead(405, { ...TEXT, allow: 'GET, POST' }).end('this path supports GET and POST\n');
      return;
    }
    const account = ownerKey(await this.#identify(request, accepted, address));
    nameIssuer(request, response);
    if (request.method === 'GET') {
      const bytes = bytesAsked(request.url ?? '');
      this.#spend(account, bytes);
      return send(response, bytes);
    }
    const bytes = await this.#receive(request, account);
    response.writeHead(200, JSON_TEXT).end(`${JSON.stringify({ bytes })}\n`);
  }

  async #identify(request: IncomingMessage, accepted: AcceptedConnection, address: string): Promise<Owner> {
    const { backend, failures, gate } = this.#options;
    const seconds = failures.blockedForSecs(address);
    if (seconds > 0) throw new Fault('AUTH_TOO_MANY_FAILURES', { seconds });
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const verdict = await backend.verifyKey(token);
    if (!verdict.ok) {
      // As on the control connection, a missing key or a temporary failure of the check does not count as a failed key.
      if (verdict.fault.status === 401 && token !== '') failures.failed(address);
      throw verdict.fault;
    }
    // The connection counts for the account from here on: unauthenticated connections cannot displace it, and the account's connection
    // limit applies.
    const refusal = gate.identify(accepted, ownerKey(verdict.owner), 'carrier');
    if (refusal !== null) throw refusal;
    accepted.served = {
      isIdle: false,
      activeAtMs: accepted.ticket.enteredMs,
      describe: () => ({ phase: 'measuring', waitsFor: 'the path' }),
      close: () => void accepted.socket.destroy(),
    };
    return verdict.owner;
  }

  #spend(account: string, bytes: number): void {
    const waitMs = this.#spent.take(account, this.#options.clock.monotonic(), bytes);
    if (waitMs === 0) return;
    throw new Fault('CONTROL_SPEED_LIMIT', { limit: SPEED_BYTES_PER_MINUTE, seconds: Math.ceil(waitMs / 1000) });
  }

  /**
   * Receives a body. A body with Content-Length is charged in advance, so that parallel requests cannot exceed the limit; otherwise bytes
   * are charged as they arrive.
   */
  async #receive(request: IncomingMessage, account: string): Promise<number> {
    const length = request.headers['content-length'];
    if (length !== undefined) this.#spend(account, checked(Number(length)));
    let received = 0;
    // Keeps the connection open after an early exit, because the response has not been sent yet.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      received = checked(received + chunk.length);
      if (length === undefined) this.#spend(account, chunk.length);
    }
    return received;
  }
}

/** Returns the number of bytes requested for a speed test. Only plain decimal numbers are valid. */
const bytesAsked = (url: string): number => {
  const asked = new URLSearchParams(url.split('?', 2)[1] ?? '').getAll('bytes');
  const [text = ''] = asked;
  return checked(asked.length === 1 && /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN);
};

const checked = (bytes: number): number => {
  if (Number.isInteger(bytes) && bytes >= 0 && bytes <= SPEED_MAX_BYTES) return bytes;
  throw new Fault('HTTP_BAD_REQUEST', { reason: `bytes must be a whole number from 0 to ${SPEED_MAX_BYTES}` });
};

function* piecesOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.length) yield left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
}

/** Sends the bytes in chunks; each chunk waits for the previous chunk to leave. */
const send = (response: ServerResponse, bytes: number): Promise<void> => {
  response.writeHead(200, { ...BYTES, 'content-length': String(bytes) });
  return pipeline(piecesOf(bytes), response);
};

/**
 * Rejects a request and closes the connection, so that a proxy cannot reuse it for another client's request. Reads the rest of an allowed
 * request body first, because closing earlier could lose the response.
 */
const refuse = (request: IncomingMessage, response: ServerResponse, fault: Fault): void => {
  if (response.headersSent || response.destroyed) return;
  const { seconds } = fault.values;
  const words = `${fault.message}\n`;
  response.writeHead(fault.status, {
    ...TEXT,
    'content-length': String(Buffer.byteLength(words)),
    ...(typeof seconds === 'number' && Number.isFinite(seconds) ? { 'retry-after': String(seconds) } : {}),
    ...(fault.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  });
  response.write(words);
  const isLetRunOut = Number(request.headers['content-length'] ?? Number.NaN) <= SPEED_MAX_BYTES;
  if (!isLetRunOut || request.readableEnded) return void response.end();
  request.once('end', () => response.end()).resume();
};

/** Adds the certificate's issuer to the response. A client that sees a different issuer detects TLS interception. */
const nameIssuer = ({ socket }: IncomingMessage, response: ServerResponse): void => {
  if (!isSecured(socket)) return;
  const { issuer } = (socket.getCertificate() ?? {}) as Partial<PeerCertificate>;
  const name = issuer?.CN ?? issuer?.O;
  if (typeof name === 'string') response.setHeader('tunnel-certificate-issuer', name.replace(/[^\x20-\x7e]/g, '?'));
};
