// GET /api/groups of an edge, with what can go wrong put into words.
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { isLoopback } from '@tunnel/client';
import { apiError, type GroupSummary, groupSummaries } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { type ApiAddress, clearText } from './api-address.ts';

export interface GroupsSource {
  readonly address: ApiAddress;
  readonly token: Secret;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
}

export interface ReadGroups {
  readonly groups: readonly GroupSummary[];
  /** As the edge wrote it, with what a later version may tell more. */
  readonly json: unknown;
}

const ANSWER_WITHIN_MS = 10_000;
/** Ten times what ten thousand members take. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

export const readGroups = async (source: GroupsSource, signal?: AbortSignal): Promise<ReadGroups> => {
  const url = groupsUrl(source.address.url);
  try {
    return understand(url, await ask(source, url, signal));
  } catch (error) {
    throw toFault(url, error);
  }
};

const groupsUrl = (base: URL): URL => {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/groups`;
  url.search = '';
  url.hash = '';
  return url;
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

const ask = ({ address, token, caFile, insecure }: GroupsSource, url: URL, stop?: AbortSignal): Promise<Answer> => {
  const late = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const options = {
    agent: false,
    signal: stop === undefined ? late : AbortSignal.any([stop, late]),
    headers: { accept: 'application/json' },
  };
  const request =
    url.protocol === 'https:'
      ? requestTls(url, {
          ...options,
          rejectUnauthorized: !insecure,
          ...(caFile === undefined ? {} : { ca: readAuthorities(caFile) }),
        })
      : requestPlain(url, options);
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => void readAnswer(response).then(resolve, reject));
    // The key is written when it is known where the connection leads: a name such as localhost may lead anywhere.
    request.once('socket', (socket) => {
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        if (address.loopbackOnly && !isLoopback(socket.remoteAddress ?? '')) {
          request.destroy(clearText(socket.remoteAddress ?? url.host));
          return;
        }
        request.setHeader('authorization', `Bearer ${token.reveal()}`);
        request.end();
      });
    });
  });
};

const readAnswer = async (response: IncomingMessage): Promise<Answer> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > ANSWER_MAX_BYTES) throw new Error('the answer is too long');
    parts.push(part);
  }
  return { status: response.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') };
};

const understand = (url: URL, { status, text }: Answer): ReadGroups => {
  const json = parse(text);
  const refusal = apiError.safeParse(json);
  if (status !== 200 && refusal.success) throw Fault.fromWire(refusal.data.code, refusal.data.error);
  const groups = groupSummaries.safeParse(json);
  if (status === 200 && groups.success) return { groups: groups.data, json };
  const reason = status === 200 ? 'its answer is no list of groups' : `it answers with ${status}`;
  // A proxy in front of an edge that is away.
  throw new Fault(status >= 500 ? 'CLIENT_API_UNREACHABLE' : 'CLIENT_NOT_AN_API', { url: url.origin, reason });
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const readAuthorities = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason }, { cause: error });
  }
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

const toFault = (url: URL, error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const { code = '', name, message } = error as NodeJS.ErrnoException;
  if (WRONG_KIND.test(code)) {
    const reason = url.protocol === 'https:' ? 'it does not speak TLS' : 'it does not speak plain HTTP';
    return new Fault('CLIENT_NOT_AN_API', { url: url.origin, reason }, { cause: error });
  }
  if (CERTIFICATE.test(code)) {
    return new Fault('CLIENT_CERTIFICATE', { server: url.host, reason: message }, { cause: error });
  }
  const isLate = name === 'AbortError' || name === 'TimeoutError';
  const reason = isLate ? 'no answer' : (REASONS[code] ?? (message || code || 'unknown error'));
  return new Fault('CLIENT_API_UNREACHABLE', { url: url.origin, reason }, { cause: error });
};
