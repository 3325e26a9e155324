// HTTP calls that carry a secret: nothing is written before it is known where the connection leads. No redirects.
import { type IncomingMessage, request as requestOver } from 'node:http';
import { dialSocket, dialTimeoutMs, type Endpoint, type ProxyFor, readAuthorities } from '@tunnel/client';
import { type ErrorCode, Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import { misuse } from '../io/problem-report.ts';

export interface HttpTrust {
  /** Clear text goes to this machine, and nowhere else. */
  readonly loopbackOnly: boolean;
  /** What is said when it would have gone elsewhere. */
  readonly refuseClearText: (host: string) => Fault;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
  readonly proxyFor: ProxyFor;
}

export interface HttpCall {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For those whose answer takes longer than others. */
  readonly withinMs?: number | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** What a person gave with a flag. Throws a Fault for what is no address; `example` is one that is. */
export const parseHttpUrl = (text: string, flag: string, example: string): URL => {
  const refuse = (why: string): Fault => misuse(`${flag} ${why}, such as ${example}.`);
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // A password in a URL would end in files, in logs and on the screen; keys and passwords have ways of their own.
  if (url.username !== '' || url.password !== '') throw refuse('must be a URL without user name and password');
  return url;
};

/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

const ANSWER_WITHIN_MS = 10_000;
/** Ten times what ten thousand members of pools take. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

export const callHttp = async (url: URL, call: HttpCall, trust: HttpTrust, stop?: AbortSignal): Promise<HttpAnswer> => {
  const endpoint = endpointOf(url, trust);
  const late = AbortSignal.timeout(dialTimeoutMs(endpoint, call.withinMs ?? ANSWER_WITHIN_MS));
  const signal = stop === undefined ? late : AbortSignal.any([stop, late]);
  // First the connection, then the head: a name such as localhost may lead anywhere.
  const socket = await dialSocket(endpoint, {
    clock: systemClock,
    minTlsVersion: 'TLSv1.2',
    signal,
    alpn: ['http/1.1'],
    refuseClearText: trust.refuseClearText,
  });
  const request = requestOver({
    createConnection: () => socket,
    host: url.hostname,
    port: endpoint.address.port,
    defaultPort: defaultPortOf(url),
    path: `${url.pathname}${url.search}`,
    method: call.method,
    headers: call.headers,
    signal,
  });
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    // Without a listener node closes the connection, and says nothing more.
    request.once('upgrade', (response, upgraded) => {
      upgraded.destroy();
      reject(new Error(`the response was HTTP ${response.statusCode}`));
    });
    request.once('response', (response) => void readAnswer(response).then(resolve, reject));
    request.end(call.body);
  });
};

const defaultPortOf = ({ protocol }: URL): number => (protocol === 'https:' ? 443 : 80);

const endpointOf = (url: URL, { loopbackOnly, caFile, insecure, proxyFor }: HttpTrust): Endpoint => {
  const port = url.port === '' ? defaultPortOf(url) : Number(url.port);
  const address = { host: hostOf(url), port, text: `${url.hostname}:${port}` };
  const ca = caFile === undefined ? undefined : readAuthorities(caFile);
  const isTls = url.protocol === 'https:';
  return {
    address,
    security: isTls ? { kind: 'tls', ca, verify: !insecure } : { kind: 'plain', loopbackOnly },
    proxy: proxyFor(address),
  };
};

const readAnswer = async (response: IncomingMessage): Promise<HttpAnswer> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > ANSWER_MAX_BYTES) throw new Error('the response is too long');
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
  ETIMEDOUT: 'no response',
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
    return fault(codes.wrongKind, `the server does not speak ${url.protocol === 'https:' ? 'TLS' : 'plain HTTP'}`);
  }
  if (CERTIFICATE.test(code)) {
    return new Fault('CLIENT_CERTIFICATE', { server: url.host, reason: message }, { cause: error });
  }
  const isLate = name === 'AbortError' || name === 'TimeoutError';
  return fault(codes.unreachable, isLate ? 'no response' : (REASONS[code] ?? (message || code || 'unknown error')));
};
