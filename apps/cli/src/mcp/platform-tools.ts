// The tools of the platform's /mcp, called with the API key. Used if the edge's REST API is closed to outside clients, so that a client
// behind a firewall can still query its account. The API key is sent only to the platform reported by the edge that has accepted the key,
// and never unencrypted.
import {
  apiError,
  type CapturedRequest,
  capturedRequest,
  edgeTunnel,
  type PlatformPools,
  platformPools,
  tunnelLogEntry,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { RequestFilter, RequestLine, ShownTunnel } from '@tunnel/mcp/tools';
import type { EdgeSource } from '../api/edge-api.ts';
import { callHttp, faultOfCall } from '../api/http-call.ts';
import { CLI_LIMITS } from '../limits.ts';

/** Maximum requests of a tunnel requested from the platform. The platform's tool returns no more at once. */
const PLATFORM_REQUESTS_MAX = 50;

/** The API key with connection settings. The address belongs to the edge, and is left out. */
export type KeyHolder = Pick<EdgeSource, 'token' | 'caFile' | 'insecure' | 'proxyFor'>;

/** A schema of the contract that parses values of type T. */
interface Reader<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false };
}

const shownTunnel = edgeTunnel.or(tunnelLogEntry);
const shortRequest = capturedRequest.pick({ id: true, method: true, path: true, status: true, duration_ms: true });

type Fields = Readonly<Record<string, unknown>>;

const replayedRequest = capturedRequest.pick({ id: true, status: true, duration_ms: true });
type ReplayedRequest = Pick<CapturedRequest, 'id' | 'status' | 'duration_ms'>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

export class PlatformTools {
  readonly #url: URL;
  readonly #holder: KeyHolder;

  /** `url` is the address of the platform, without a trailing slash. */
  constructor(url: string, holder: KeyHolder) {
    this.#url = new URL(`${url}/mcp`);
    this.#holder = holder;
  }

  async list(limit: number, signal: AbortSignal): Promise<{ tunnels: ShownTunnel[]; truncated: boolean }> {
    const told = await this.#call('list_tunnels', { limit }, signal);
    return { tunnels: this.#read(shownTunnel.array(), told['tunnels']), truncated: told['truncated'] === true };
  }

  async get(tunnel: string, signal: AbortSignal): Promise<ShownTunnel> {
    return this.#read(shownTunnel, (await this.#call('get_tunnel', { tunnel }, signal))['tunnel']);
  }

  async close(tunnel: string, signal: AbortSignal): Promise<void> {
    await this.#call('close_tunnel', { tunnel }, signal);
  }

  async requests(tunnel: string, signal: AbortSignal): Promise<{ requests: RequestLine[]; truncated: boolean }> {
    const limit = PLATFORM_REQUESTS_MAX;
    const told = await this.#call('list_requests', { tunnel, limit }, signal);
    const times = told['requests'];
    const requests = this.#read(shortRequest.array(), times).map((request, index) => ({
      ...request,
      at: String((times as readonly Fields[])[index]?.['time']),
    }));
    return { requests, truncated: told['truncated'] === true };
  }

  async request(tunnel: string, requestId: string, signal: AbortSignal): Promise<CapturedRequest> {
    const told = await this.#call('get_request', { tunnel, request_id: requestId }, signal);
    return this.#read(capturedRequest, told['request']);
  }

  async replay(tunnel: string, requestId: string, signal: AbortSignal): Promise<ReplayedRequest> {
    const args = { tunnel, request_id: requestId };
    const told = await this.#call('replay_request', args, signal, CLI_LIMITS.REPLAY_ANSWER_TIMEOUT_MS);
    return this.#read(replayedRequest, told['request']);
  }

  /** Returns the first matching request that finishes from now on, or null if the time runs out. */
  async next(
    tunnel: string,
    filter: RequestFilter,
    withinMs: number,
    signal: AbortSignal,
  ): Promise<CapturedRequest | null> {
    const args = { tunnel, ...filter, timeout_secs: Math.ceil(withinMs / 1000) };
    const told = await this.#call('wait_for_request', args, signal, withinMs + CLI_LIMITS.WAIT_ANSWER_SLACK_MS);
    return this.#read(capturedRequest.nullable(), told['request']);
  }

  async pools(signal: AbortSignal): Promise<PlatformPools> {
    return this.#read(platformPools, await this.#call('list_pools', {}, signal));
  }

  #read<T>(reader: Reader<T>, value: unknown): T {
    const read = reader.safeParse(value);
    if (read.success) return read.data;
    throw this.#unreachable('the response is not from a platform');
  }

  async #call(tool: string, args: object, signal: AbortSignal, withinMs?: number): Promise<Fields> {
    const params = { name: tool, arguments: args };
    const { status, text } = await this.#post(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      signal,
      withinMs,
    );
    const answer = parse(text);
    const refusal = apiError.safeParse(answer);
    if (status !== 200 && refusal.success) throw Fault.fromWire(refusal.data.code, refusal.data.error);
    const result = isFields(answer) ? answer['result'] : undefined;
    if (status !== 200 || !isFields(result)) throw this.#unreachable(`the response was HTTP ${status}`);
    const { isError, content, structuredContent } = result;
    if (isError === true) throw faultOfLine(textOf(content));
    if (!isFields(structuredContent)) throw this.#unreachable('the response is not from a platform');
    return structuredContent;
  }

  async #post(message: object, signal: AbortSignal, withinMs: number | undefined) {
    const { token, caFile, insecure, proxyFor } = this.#holder;
    const headers = {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      authorization: `Bearer ${token.reveal()}`,
    };
    const refuseClearText = (host: string): Fault =>
      this.#unreachable(`the API key would be sent to ${host} unencrypted`);
    const trust = { loopbackOnly: true, refuseClearText, caFile, insecure, proxyFor };
    try {
      const call = { method: 'POST', headers, body: JSON.stringify(message), withinMs };
      return await callHttp(this.#url, call, trust, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfCall(error, this.#url, this.#url.origin, FAILURES);
    }
  }

  #unreachable(reason: string): Fault {
    return new Fault('CLIENT_PLATFORM_UNREACHABLE', { url: this.#url.origin, reason });
  }
}

const FAILURES = { wrongKind: 'CLIENT_NOT_A_PLATFORM', unreachable: 'CLIENT_PLATFORM_UNREACHABLE' } as const;

/**
 * Converts an error text of the form `CODE: message Next: hint` to a Fault. The hint is dropped, because the fault gets a hint of the
 * CLI.
 */
const faultOfLine = (text: string): Fault => {
  const [, code = '', message = text] = /^([A-Z0-9_]+): (.*?)(?: Next: .*)?$/s.exec(text) ?? [];
  return Fault.fromWire(code, message);
};

const textOf = (content: unknown): string => {
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  return isFields(first) ? String(first['text']) : '';
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
