// One request to one place, once: no redirect is followed, no proxy, no kept connection, and no more read of the answer than was asked for.
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request as requestPlain,
} from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';

/** 100 Continue, 103 Early Hints: honest servers send one or two */
const FETCH_EARLY_HEADS_MAX = 10;

export interface RequestPlan {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Where the connection goes, whatever the name says; null: the system may resolve it. */
  readonly addresses: readonly string[] | null;
  /** Of the answer's body; a longer one is an error. 0: it is not read, the head is the answer. */
  readonly maxBytes: number;
  /** For https. */
  readonly secureContext: () => SecureContext;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As it was sent: nothing is unpacked, so nothing small becomes large. */
  readonly body: Buffer;
}

/** Rejects when there is no answer, or a longer one. */
export const requestOnce = (plan: RequestPlan): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { url, method, headers, body, addresses, maxBytes, secureContext, signal } = plan;
    const isTls = url.protocol === 'https:';
    const options: RequestOptions & { secureContext?: SecureContext } = {
      method,
      agent: false,
      headers: body === undefined ? headers : { ...headers, 'content-length': body.length },
      ...(addresses === null ? {} : { lookup: pinnedTo(addresses) }),
      // The name goes into Host and SNI as it stands in the URL, so that the certificate is that of the name.
      ...(isTls ? { secureContext: secureContext() } : {}),
    };
    const request = (isTls ? requestTls : requestPlain)(url, options);
    // Told here: once an answer has begun, newer versions of Node.js tell the request nothing of why it was destroyed.
    const giveUp = (error: Error): void => {
      reject(error);
      request.destroy(error);
    };
    const abort = (): void => giveUp(new Error('too slow'));
    let earlyHeads = 0;
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
      readBody(response, maxBytes).then(answer, giveUp);
    });
    // After the first of these the others change nothing; destroy() above may well lead to an error.
    request.on('error', reject);
    request.on('close', () => {
      signal.removeEventListener('abort', abort);
      reject(new Error('closed without a response'));
    });
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    request.end(body);
  });

/** A code, never a message: some messages quote what was sent. */
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

const pinnedTo = (addresses: readonly string[]): LookupFunction => {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, done) => {
    const [first] = found;
    if (first === undefined) done(new Error('no address'), '');
    else if (options.all === true) done(null, found);
    else done(null, first.address, first.family);
  };
};
