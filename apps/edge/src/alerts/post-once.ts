// One POST to one place, once: no redirects, no proxy, no kept connection, and nothing read beyond the head of the answer.
import { type RequestOptions, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AlertMessage } from './alert-message.ts';

export interface PostPlan {
  readonly url: URL;
  /** Where the connection goes, whatever the name says; null: the system may resolve it. */
  readonly addresses: readonly string[] | null;
  readonly message: AlertMessage;
  /** For https. */
  readonly secureContext: () => SecureContext;
  readonly signal: AbortSignal;
}

/** 100 Continue, 103 Early Hints: honest receivers send one or two. */
const EARLY_HEADS_MAX = 10;

/** The status of the answer; rejects when there is none. */
export const postOnce = ({ url, addresses, message, secureContext, signal }: PostPlan): Promise<number> =>
  new Promise((resolve, reject) => {
    const isTls = url.protocol === 'https:';
    const options: RequestOptions & { secureContext?: SecureContext } = {
      method: 'POST',
      agent: false,
      headers: { ...message.headers, 'content-length': message.body.length },
      ...(addresses === null ? {} : { lookup: pinnedTo(addresses) }),
      // The name goes into Host and SNI as it stands in the URL, so that the certificate is that of the name.
      ...(isTls ? { secureContext: secureContext() } : {}),
    };
    const request = (isTls ? requestTls : requestPlain)(url, options);
    const abort = (): void => void request.destroy(new Error('too slow'));
    let earlyHeads = 0;
    request.on('information', () => {
      earlyHeads += 1;
      if (earlyHeads > EARLY_HEADS_MAX) request.destroy(new Error('no end of early answers'));
    });
    request.on('response', (response) => {
      resolve(response.statusCode ?? 0);
      request.destroy();
    });
    // After the first of these the others change nothing; destroy() above may well lead to an error.
    request.on('error', reject);
    request.on('close', () => {
      signal.removeEventListener('abort', abort);
      reject(new Error('closed without an answer'));
    });
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    request.end(message.body);
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
