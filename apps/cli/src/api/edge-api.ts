// The REST of an edge: where it is, whether a key may go there, and its groups, with what can go wrong put into words.
import { isLoopback, parseServerAddress } from '@tunnel/client';
import { apiError, type GroupSummary, groupSummaries } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { callHttp, describeFailure, type HttpAnswer } from './http-call.ts';

export interface ApiOptions {
  /** --api, or `api_url` of config.yml. */
  readonly api: string | undefined;
  /** host:port of the control plane: the REST is on the same host unless somebody says else. */
  readonly server: string;
  /** false: clear text is allowed. */
  readonly tls: boolean | undefined;
}

export interface ApiAddress {
  /** Without a slash at its end. */
  readonly url: URL;
  /** Clear text goes to this machine, and nowhere else. */
  readonly loopbackOnly: boolean;
}

const DEFAULT_API_PORT = 4041;

export const apiAddress = ({ api, server, tls }: ApiOptions): ApiAddress => {
  const url = api === undefined ? besideServer(server) : parseUrl(api);
  const loopbackOnly = url.protocol === 'http:' && tls !== false;
  if (loopbackOnly && !isLoopback(hostOf(url))) throw clearText(url.host);
  return { url, loopbackOnly };
};

/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

export const clearText = (host: string): Fault =>
  new Fault('CLIENT_USAGE', {
    reason: `the key would go to ${host} in clear: give an https:// address with --api, or --no-tls if the network between is yours`,
  });

const besideServer = (server: string): URL => {
  const { host } = parseServerAddress(server);
  return new URL(`http://${host.includes(':') ? `[${host}]` : host}:${DEFAULT_API_PORT}`);
};

const parseUrl = (text: string): URL => {
  const refuse = (why: string): Fault =>
    new Fault('CLIENT_USAGE', { reason: `--api ${why}, as http://127.0.0.1:4041` });
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // A password in a URL would end in logs and on the screen; the key has ways of its own.
  if (url.username !== '' || url.password !== '') throw refuse('must be without a name and a password');
  return url;
};

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

export const readGroups = async (source: GroupsSource, signal?: AbortSignal): Promise<ReadGroups> => {
  const url = groupsUrl(source.address.url);
  try {
    const { address, token, caFile, insecure } = source;
    const headers = { accept: 'application/json', authorization: `Bearer ${token.reveal()}` };
    const trust = { loopbackOnly: address.loopbackOnly, refuseClearText: clearText, caFile, insecure };
    return understand(url, await callHttp(url, { method: 'GET', headers }, trust, signal));
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

const understand = (url: URL, { status, text }: HttpAnswer): ReadGroups => {
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

const toFault = (url: URL, error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const { kind, reason } = describeFailure(url, error);
  if (kind === 'certificate') return new Fault('CLIENT_CERTIFICATE', { server: url.host, reason }, { cause: error });
  const code = kind === 'wrong-kind' ? 'CLIENT_NOT_AN_API' : 'CLIENT_API_UNREACHABLE';
  return new Fault(code, { url: url.origin, reason }, { cause: error });
};
