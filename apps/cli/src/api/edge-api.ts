// GET /api/groups of an edge, with what can go wrong put into words.
import { apiError, type GroupSummary, groupSummaries } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { type ApiAddress, clearText } from './api-address.ts';
import { callHttp, describeFailure, type HttpAnswer } from './http-call.ts';

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
