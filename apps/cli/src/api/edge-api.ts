// The REST API of an edge: its address, the check that the API key may be sent there, the list of groups, and errors as text.
import { isLoopbackHost, type ProxyFor, parseServerAddress } from '@tunnel/client';
import { apiError, type GroupSummary, groupSummaries } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { misuse } from '../io/problem-report.ts';
import { callHttp, faultOfCall, type HttpAnswer, hostOf, parseHttpUrl } from './http-call.ts';

export interface ApiOptions {
  /** Address of the REST API, from --api or from `api_url` of config.yml. */
  readonly api: string | undefined;
  /** host:port of the control plane. The REST API is expected on the same host, unless `api` is set. */
  readonly server: string;
  /** False if unencrypted connections are allowed. */
  readonly tls: boolean | undefined;
}

export interface ApiAddress {
  /** Base URL of the REST API. */
  readonly url: URL;
  /** True if unencrypted connections are allowed only to this computer. */
  readonly loopbackOnly: boolean;
}

const DEFAULT_API_PORT = 4041;

export const apiAddress = ({ api, server, tls }: ApiOptions): ApiAddress => {
  const url = api === undefined ? besideServer(server) : parseHttpUrl(api, '--api', 'http://127.0.0.1:4041');
  const loopbackOnly = url.protocol === 'http:' && tls !== false;
  if (loopbackOnly && !isLoopbackHost(hostOf(url))) throw clearText(url.host);
  return { url, loopbackOnly };
};

const clearText = (host: string): Fault =>
  misuse(
    `the API key would be sent to ${host} unencrypted. Use an https:// URL with --api, or --no-tls on a network you trust.`,
  );

const besideServer = (server: string): URL => {
  const { host } = parseServerAddress(server);
  return new URL(`http://${host.includes(':') ? `[${host}]` : host}:${DEFAULT_API_PORT}`);
};

/** An edge with the credentials and connection settings for calls. */
export interface EdgeSource {
  readonly address: ApiAddress;
  readonly token: Secret;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
  readonly proxyFor: ProxyFor;
}

export interface ReadGroups {
  readonly groups: readonly GroupSummary[];
  /** The response as sent by the edge. A later version of the edge may send more fields. */
  readonly json: unknown;
}

export const readGroups = async (source: EdgeSource, signal?: AbortSignal): Promise<ReadGroups> => {
  const call = { method: 'GET', path: '/api/groups', answer: groupSummaries, what: 'list of groups' } as const;
  const { value, json } = await askEdge(source, call, signal);
  return { groups: value, json };
};

export interface EdgeCall<T> {
  readonly method: 'GET' | 'POST';
  /** URL path with the query string. */
  readonly path: string;
  readonly answer: { safeParse(json: unknown): { success: true; data: T } | { success: false } };
  /** Name of the expected response in error messages, such as `list of groups`. */
  readonly what: string;
  readonly withinMs?: number;
}

export const askEdge = async <T>(
  source: EdgeSource,
  call: EdgeCall<T>,
  signal?: AbortSignal,
): Promise<{ readonly value: T; readonly json: unknown }> => {
  const url = urlOf(source.address.url, call.path);
  return understand(url, call, await answerOf(source, url, call, signal));
};

/** Sends a command to an edge that responds without content (204). */
export const tellEdge = async (
  source: EdgeSource,
  call: { readonly method: 'DELETE'; readonly path: string },
  signal?: AbortSignal,
): Promise<void> => {
  const url = urlOf(source.address.url, call.path);
  const answer = await answerOf(source, url, call, signal);
  if (answer.status !== 204) understand(url, { answer: NOTHING, what: 'confirmation' }, answer);
};

const NOTHING = { safeParse: () => ({ success: false }) as const };

const answerOf = async (
  { address, token, caFile, insecure, proxyFor }: EdgeSource,
  url: URL,
  { method, withinMs }: { readonly method: string; readonly withinMs?: number | undefined },
  signal: AbortSignal | undefined,
): Promise<HttpAnswer> => {
  try {
    const headers = { accept: 'application/json', authorization: `Bearer ${token.reveal()}` };
    const trust = { loopbackOnly: address.loopbackOnly, refuseClearText: clearText, caFile, insecure, proxyFor };
    return await callHttp(url, { method, headers, withinMs }, trust, signal);
  } catch (error) {
    throw faultOfCall(error, url, url.origin, FAILURES);
  }
};

const FAILURES = { wrongKind: 'CLIENT_NOT_AN_API', unreachable: 'CLIENT_API_UNREACHABLE' } as const;

const urlOf = (base: URL, path: string): URL => new URL(`${base.origin}${base.pathname.replace(/\/+$/, '')}${path}`);

const understand = <T>(
  url: URL,
  { answer, what }: Pick<EdgeCall<T>, 'answer' | 'what'>,
  { status, text }: HttpAnswer,
): { readonly value: T; readonly json: unknown } => {
  const json = parse(text);
  const refusal = apiError.safeParse(json);
  if (status !== 200 && refusal.success) throw Fault.fromWire(refusal.data.code, refusal.data.error);
  const parsed = answer.safeParse(json);
  if (status === 200 && parsed.success) return { value: parsed.data, json };
  const reason = status === 200 ? `the response is not a ${what}` : `the response was HTTP ${status}`;
  // A status of 500 or above comes from a proxy in front of an unreachable edge.
  throw new Fault(status >= 500 ? 'CLIENT_API_UNREACHABLE' : 'CLIENT_NOT_AN_API', { url: url.origin, reason });
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
