// HTTP calls that carry a secret. Nothing is sent before the destination of the connection is known. Redirects are not followed.
import { type IncomingMessage, request as requestOver } from 'node:http';
import { dialSocket, dialTimeoutMs, type Endpoint, type ProxyFor, readAuthorities } from '@tunnel/client';
import { type ErrorCode, Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import { misuse } from '../io/problem-report.ts';

export interface HttpTrust {
  /** True if unencrypted connections are allowed only to this computer. */
  readonly loopbackOnly: boolean;
  /** Creates the error for an unencrypted connection to another computer. */
  readonly refuseClearText: (host: string) => Fault;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
  readonly proxyFor: ProxyFor;
}

export interface HttpCall {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Response timeout in milliseconds, for calls slower than the default of 10 seconds. */
  readonly withinMs?: number | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** Parses a URL given with a flag. Throws a Fault for an invalid URL, with `example` as a valid URL in the message. */
export const parseHttpUrl = (text: string, flag: string, example: string): URL => {
  const refuse = (why: string): Fault => misuse(`${flag} ${why}, such as ${example}.`);
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // A password in a URL would end up in files, in logs and on the screen. Keys and passwords are passed in other ways.
  if (url.username !== '' || url.password !== '') throw refuse('must be a URL without user name and password');
  return url;
};

/** Returns the host of a URL. An IPv6 address has no brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

const ANSWER_WITHIN_MS = 10_000;
/** Maximum size of a response, ten times the size of a list with ten thousand group members. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

export const callHttp = async (url: URL, call: HttpCall, trust: HttpTrust, stop?: AbortSignal): Promise<HttpAnswer> => {
  const endpoint = endpointOf(url, trust);
  const late = AbortSignal.timeout(dialTimeoutMs(endpoint, call.withinMs ?? ANSWER_WITHIN_MS));
  const signal = stop === undefined ? late : AbortSignal.any([stop, late]);
  // Connects before the request is written, because a name such as localhost can resolve to any address.
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
    // Without a listener for `upgrade`, Node.js closes the connection and reports nothing.
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

/** Error codes of a server that does not speak TLS, or does not speak HTTP. */
const WRONG_KIND = /^(EPROTO|HPE_.*|ERR_SSL_.*)$/;
const CERTIFICATE = /CERT|ISSUER|SELF_SIGNED|LEAF_SIGNATURE|ALTNAME/;

export interface FailureCodes {
  /** Error code for a server that does not speak the expected protocol. */
  readonly wrongKind: ErrorCode;
  readonly unreachable: ErrorCode;
}

/** Converts the error of a call without a response to a Fault. `shown` is the address in a form known to the user. */
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
