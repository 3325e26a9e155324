// A single HTTP request: no redirects, no proxy, no keep-alive, and a limited response size.
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request as requestPlain,
} from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';

/** Maximum interim responses (100 Continue, 103 Early Hints). Honest servers send one or two. */
const FETCH_EARLY_HEADS_MAX = 10;

export interface RequestPlan {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Addresses to connect to, regardless of the name. Null lets the system resolve the name. */
  readonly addresses: readonly string[] | null;
  /** Maximum size of the response body; a longer body is an error. 0: only the head is read. */
  readonly maxBytes: number;
  /** Receives the body of a 200 in pieces; the body of the answer is then empty. Absent: the body is collected in memory. */
  readonly onPiece?: ((piece: Buffer) => Promise<void>) | undefined;
  /** TLS context for https. */
  readonly secureContext: () => SecureContext;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Body as received. Not decompressed, so that a small body cannot become large. */
  readonly body: Buffer;
}

/** Rejects if there is no response, or if its body is too long. */
export const requestOnce = (plan: RequestPlan): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { url, method, headers, body, addresses, maxBytes, onPiece, secureContext, signal } = plan;
    const isTls = url.protocol === 'https:';
    const options: RequestOptions & { secureContext?: SecureContext } = {
      method,
      agent: false,
      headers: body === undefined ? headers : { ...headers, 'content-length': body.length },
      ...(addresses === null ? {} : { lookup: pinnedTo(addresses) }),
      // Host and SNI keep the name of the URL, so the certificate is checked for the name.
      ...(isTls ? { secureContext: secureContext() } : {}),
    };
    const request = (isTls ? requestTls : requestPlain)(url, options);
    // Rejected here, because newer versions of Node.js do not report the reason on the request once a response has begun.
    const giveUp = (error: Error): void => {
      reject(error);
      request.destroy(error);
    };
    const abort = (): void => giveUp(new Error('too slow'));
    let earlyHeads = 0;
    let isForPieces = false;
    request.on('information', () => {
      earlyHeads += 1;
      if (earlyHeads > FETCH_EARLY_HEADS_MAX) giveUp(new Error('too many interim responses'));
    });
    request.on('response', (response) => {
      const answer = (read: Buffer): void => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: read });
        request.destroy();
      };
      if (maxBytes === 0) return answer(Buffer.alloc(0));
      isForPieces = onPiece !== undefined && response.statusCode === 200;
      const reading = isForPieces && onPiece ? passBody(response, maxBytes, onPiece) : readBody(response, maxBytes);
      reading.then(answer, giveUp);
    });
    // Only the first rejection counts. A destroyed request may also emit an error.
    request.on('error', reject);
    request.on('close', () => {
      signal.removeEventListener('abort', abort);
      // The last pieces can still be on their way to the caller. Reading them fails if the connection broke.
      if (!isForPieces) reject(new Error('closed without a response'));
    });
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    request.end(body);
  });

/** Returns an error code, never a message, because messages may quote the request. */
export const reasonOf = (error: unknown): string => {
  const { code } = error as NodeJS.ErrnoException;
  return code ?? (error instanceof AggregateError ? 'no address responded' : 'closed without a response');
};

export class AnswerTooLong extends Error {}

const readBody = (response: IncomingMessage, maxBytes: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) reject(new AnswerTooLong());
      else chunks.push(chunk);
    });
    response.on('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', reject);
  });

const passBody = async (
  response: IncomingMessage,
  maxBytes: number,
  onPiece: (piece: Buffer) => Promise<void>,
): Promise<Buffer> => {
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw new AnswerTooLong();
    await onPiece(piece);
  }
  return Buffer.alloc(0);
};

const pinnedTo = (addresses: readonly string[]): LookupFunction => {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, done) => {
    const [first] = found;
    if (first === undefined) done(new Error('no address'), '');
    else if (options.all === true) done(null, found);
    else done(null, first.address, first.family);
  };
};
