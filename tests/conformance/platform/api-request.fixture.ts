// One request to the platform API and its answer. Every refusal is held to the shape that all refusals have.
import { apiError } from '@tunnel/contract';
import { expect } from 'vitest';

export interface Question {
  /** Sent as JSON; left out: no body. */
  readonly body?: unknown;
  /** Sent as it is, with the content type that the headers say. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  /** An access token. */
  readonly token?: string;
  readonly cookie?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** null: it is empty. */
  readonly body: unknown;
  /** Of a refusal; empty: it is none. */
  readonly code: string;
  readonly error: string;
  /** As a browser sends it back; empty: none was set, or it was cleared. */
  readonly cookie: string;
}

export const askPlatform = async (
  url: string,
  method: string,
  path: string,
  { body, raw, token, cookie, headers = {} }: Question = {},
): Promise<Answer> => {
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(cookie === undefined ? {} : { cookie }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(raw === undefined ? {} : { body: raw }),
  });
  return read(response, `${method} ${path}`);
};

const read = async (response: Response, asked: string): Promise<Answer> => {
  const { status, headers } = response;
  const text = await response.text();
  const type = headers.get('content-type') ?? '';
  const body = type.startsWith('application/json') && text !== '' ? (JSON.parse(text) as unknown) : null;
  expect(headers.get('x-request-id'), asked).toMatch(/^[\w.-]{1,64}$/);
  // A page for people is the one other form of a refusal.
  const refusal =
    status >= 400 && !type.startsWith('text/html') ? expectRefusal(body, headers, asked) : { code: '', error: '' };
  const cookie = /^refresh_token=[\w-]+/.exec(headers.get('set-cookie') ?? '')?.[0] ?? '';
  return { status, headers, text, body, cookie, ...refusal };
};

/** Exactly error, code and request_id; the id is the header's; no word of the inside. */
const expectRefusal = (body: unknown, headers: Headers, asked: string): { code: string; error: string } => {
  const { error, code, request_id } = apiError.strict().parse(body);
  expect([asked, request_id]).toEqual([asked, headers.get('x-request-id')]);
  expect(code, asked).toMatch(/^[A-Z][A-Z0-9_]+$/);
  expect(error, asked).not.toMatch(/^$|\bat \/|node_modules|select |insert |postgres|stack trace/i);
  return { code, error };
};

/** Status and code, as most tests of refusals want them. */
export const refusalOf = ({ status, code }: Answer): [number, string] => [status, code];
