// HTTP calls that carry a secret: nothing is written before it is known where the connection leads. No redirects.
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { isLoopback, readAuthorities } from '@tunnel/client';
import { type ErrorCode, Fault } from '@tunnel/errors';

export interface HttpTrust {
  /** Clear text goes to this machine, and nowhere else. */
  readonly loopbackOnly: boolean;
  /** What is said when it would have gone elsewhere. */
  readonly refuseClearText: (host: string) => Fault;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
}

export interface HttpCall {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** What a person gave with a flag. Throws a Fault for what is no address; `example` is one that is. */
export const parseHttpUrl = (text: string, flag: string, example: string): URL => {
  const refuse = (why: string): Fault => new Fault('CLIENT_USAGE', { reason: `${flag} ${why}, as ${example}` });
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // A password in a URL would end in files, in logs and on the screen; keys and passwords have ways of their own.
  if (url.username !== '' || url.password !== '') throw refuse('must be without a name and a password');
  return url;
};

/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

const ANSWER_WITHIN_MS = 10_000;
/** Ten times what ten thousand members of pools take. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

export const callHttp = (url: URL, call: HttpCall, trust: HttpTrust, stop?: AbortSignal): Promise<HttpAnswer> => {
  const late = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const options = {
    agent: false,
    method: call.method,
    headers: call.headers,
    signal: stop === undefined ? late : AbortSignal.any([stop, late]),
  };
  const isTls = url.protocol === 'https:';
  const request = isTls ? requestTls(url, { ...options, ...certificateTrust(trust) }) : requestPlain(url, options);
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => void readAnswer(response).then(resolve, reject));
    // The head is written at the end() below: a name such as localhost may lead anywhere.
    request.once('socket', (socket) => {
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        if (trust.loopbackOnly && !isLoopback(socket.remoteAddress ?? '')) {
          request.destroy(trust.refuseClearText(socket.remoteAddress ?? url.host));
        } else request.end(call.body);
      });
    });
  });
};

const certificateTrust = ({ caFile, insecure }: HttpTrust): { rejectUnauthorized: boolean; ca?: string } => ({
  rejectUnauthorized: !insecure,
  ...(caFile === undefined ? {} : { ca: readAuthorities(caFile) }),
});

const readAnswer = async (response: IncomingMessage): Promise<HttpAnswer> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > ANSWER_MAX_BYTES) throw new Error('the answer is too long');
    parts.push(part);
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(parts).toString('utf8'),
  };
};

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  ENOTFOUND: 'host not found',
  EHOSTUNREACH: 'no route to the host',
  ETIMEDOUT: 'no answer',
};

/** What tells that the other side speaks no TLS, or no HTTP. */
const WRONG_KIND = /^(EPROTO|HPE_.*|ERR_SSL_.*)$/;
const CERTIFICATE = /CERT|ISSUER|SELF_SIGNED|LEAF_SIGNATURE|ALTNAME/;

export interface FailureCodes {
  /** The other side speaks another language. */
  readonly wrongKind: ErrorCode;
  readonly unreachable: ErrorCode;
}

/** Why there was no answer at all. `shown`: the address as people know it. */
export const faultOfCall = (error: unknown, url: URL, shown: string, codes: FailureCodes): Fault => {
  if (error instanceof Fault) return error;
  const { code = '', name, message } = error as NodeJS.ErrnoException;
  const fault = (errorCode: ErrorCode, reason: string): Fault =>
    new Fault(errorCode, { url: shown, reason }, { cause: error });
  if (WRONG_KIND.test(code)) {
    return fault(codes.wrongKind, `it does not speak ${url.protocol === 'https:' ? 'TLS' : 'plain HTTP'}`);
  }
  if (CERTIFICATE.test(code)) {
    return new Fault('CLIENT_CERTIFICATE', { server: url.host, reason: message }, { cause: error });
  }
  const isLate = name === 'AbortError' || name === 'TimeoutError';
  return fault(codes.unreachable, isLate ? 'no answer' : (REASONS[code] ?? (message || code || 'unknown error')));
};
