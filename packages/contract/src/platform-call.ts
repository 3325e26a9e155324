// A call to the platform API: builds the request, checks the response, and converts error responses into faults.
import { Fault } from '@tunnel/errors';
import type * as z from 'zod';
import { apiError } from './api-error.ts';

export interface PlatformRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** Redirects are errors, so that passwords and tokens are sent only to the configured address. */
  readonly redirect: 'error';
}

export interface PlatformAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** Function that sends a request, compatible with the global `fetch`. */
export type PlatformFetch = (url: string, request: PlatformRequest) => Promise<PlatformAnswer>;

export interface PlatformClientOptions {
  /** Base URL of the platform. A path in the URL is kept. */
  readonly url: string;
  readonly fetch: PlatformFetch;
  /** Returns the access token. Called for every request that needs a token. */
  readonly accessToken?: () => string;
}

export interface PlatformCall<T> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Schema of the response body. Null if the response has no body. */
  readonly answer: z.ZodType<T, T> | null;
  readonly body?: object;
  readonly bearer?: boolean;
  readonly refreshToken?: string | undefined;
  readonly idempotencyKey?: string;
}

export interface Answered<T> {
  readonly body: T;
  readonly headers: PlatformAnswer['headers'];
}

const NOTHING = undefined as never;

export class PlatformCaller {
  readonly #url: string;
  readonly #fetch: PlatformFetch;
  readonly #accessToken: () => string;

  constructor({ url, fetch, accessToken = () => '' }: PlatformClientOptions) {
    this.#url = url.replace(/\/+$/, '');
    this.#fetch = fetch;
    this.#accessToken = accessToken;
  }

  async call<T>(call: PlatformCall<T>): Promise<Answered<T>> {
    const { status, headers, text } = await this.#send(call);
    const json = parse(text);
    if (status < 200 || status > 299) throw this.#refusal(status, json, headers);
    if (call.answer === null) return { body: NOTHING, headers };
    const parsed = call.answer.safeParse(json);
    if (!parsed.success) throw this.#notAPlatform(`unexpected response to ${call.method} ${call.path}`);
    // Returns the body as received instead of the parsed value, so that fields added by later versions are kept.
    return { body: json as T, headers };
  }

  async #send<T>(call: PlatformCall<T>): Promise<{ status: number; headers: PlatformAnswer['headers']; text: string }> {
    const request = {
      method: call.method,
      headers: {
        accept: 'application/json',
        ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(call.bearer === true ? { authorization: `Bearer ${this.#accessToken()}` } : {}),
        ...(call.refreshToken === undefined ? {} : { cookie: `refresh_token=${call.refreshToken}` }),
        ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      redirect: 'error',
    } as const;
    // A browser's `fetch` throws if called as the method of an object.
    const fetch = this.#fetch;
    try {
      const answer = await fetch(this.#url + call.path, request);
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    } catch (error) {
      if (error instanceof Fault) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new Fault('CLIENT_PLATFORM_UNREACHABLE', { url: this.#url, reason }, { cause: error });
    }
  }

  #refusal(status: number, json: unknown, headers: PlatformAnswer['headers']): Fault {
    const refusal = apiError.safeParse(json);
    if (refusal.success) {
      const { code, error, request_id } = refusal.data;
      return Fault.fromWire(code, error, { request_id, ...waitOf(headers) });
    }
    const reason = `the server responded with status ${status}`;
    // A 5xx response without the API's error body usually comes from a proxy that cannot reach the platform.
    if (status >= 500) return new Fault('CLIENT_PLATFORM_UNREACHABLE', { url: this.#url, reason });
    return this.#notAPlatform(reason);
  }

  #notAPlatform(reason: string): Fault {
    return new Fault('CLIENT_NOT_A_PLATFORM', { url: this.#url, reason });
  }
}

/**
 * Reads the wait time from Retry-After, named `seconds` as in the error catalogue. A date is ignored, because platforms send only
 * seconds.
 */
const waitOf = (headers: PlatformAnswer['headers']): { readonly seconds?: number } => {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? { seconds: Number(text) } : {};
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
