// Sends a request to the platform API. Every error response is checked for the common error shape.
import { apiError } from '@tunnel/contract';
import { expect } from 'vitest';

export interface Question {
  /** Body that is sent as JSON; undefined sends no body. */
  readonly body?: unknown;
  /** Body that is sent unchanged, with the content type from `headers`. */
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
  /** The parsed body; null for an empty body. */
  readonly body: unknown;
  /** Code of the error response; empty for a success. */
  readonly code: string;
  readonly error: string;
  /** The refresh cookie in the form a browser sends back; empty if no cookie was set or the cookie was cleared. */
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
  // HTML error pages are the only error responses without the JSON shape.
  const refusal =
    status >= 400 && !type.startsWith('text/html') ? expectRefusal(body, headers, asked) : { code: '', error: '' };
  const cookie = /^refresh_token=[\w-]+/.exec(headers.get('set-cookie') ?? '')?.[0] ?? '';
  return { status, headers, text, body, cookie, ...refusal };
};

/** Checks that an error has exactly error, code and request_id, that the id matches the header, and that the text reveals no internals. */
const expectRefusal = (body: unknown, headers: Headers, asked: string): { code: string; error: string } => {
  const { error, code, request_id } = apiError.strict().parse(body);
  expect([asked, request_id]).toEqual([asked, headers.get('x-request-id')]);
  expect(code, asked).toMatch(/^[A-Z][A-Z0-9_]+$/);
  expect(error, asked).not.toMatch(/^$|\bat \/|node_modules|select |insert |postgres|stack trace/i);
  return { code, error };
};

/** Returns status and code, as most tests of errors compare them. */
export const refusalOf = ({ status, code }: Answer): [number, string] => [status, code];
