// One call to the platform: what is sent, what is taken for an answer, and what a refusal becomes.
import { Fault } from '@tunnel/errors';
import type * as z from 'zod';
import { apiError } from './api-error.ts';

export interface PlatformRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** A password or a token goes to the address that was given, and to no other. */
  readonly redirect: 'error';
}

export interface PlatformAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** The global `fetch` is one. */
export type PlatformFetch = (url: string, request: PlatformRequest) => Promise<PlatformAnswer>;

export interface PlatformClientOptions {
  /** Where the platform is; a path is kept. */
  readonly url: string;
  readonly fetch: PlatformFetch;
  /** Asked at each call that needs one. */
  readonly accessToken?: () => string;
}

export interface PlatformCall<T> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** null: the answer has no body. */
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
    // As it came: what a later version tells more is kept.
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
    // A browser's fetch refuses to be called as the method of an object.
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
    // A proxy in front of a platform that is away.
    if (status >= 500) return new Fault('CLIENT_PLATFORM_UNREACHABLE', { url: this.#url, reason });
    return this.#notAPlatform(reason);
  }

  #notAPlatform(reason: string): Fault {
    return new Fault('CLIENT_NOT_A_PLATFORM', { url: this.#url, reason });
  }
}

/** How long to wait, as the catalogue names it. A date in its place is nothing that a platform sends. */
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
