// Properties of every response of the platform: the request id, and the security headers for browsers.
import { randomId, type Secret } from '@tunnel/runtime';
import type { RequestSource } from './trusted-edge-header.ts';

export const newRequestId = (): string => randomId('req');

/** Security headers of every response. HTML pages override the content security policy. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

const HTTPS_FOR_A_YEAR = { 'strict-transport-security': 'max-age=31536000' } as const;

export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/**
 * Returns the headers of a response, depending on the source of the request. Only responses over https tell the browser to stay on https.
 */
export const headersOfEveryAnswer = (options: {
  readonly publicUrl: string;
  readonly edgeSecret?: Secret | undefined;
}): ((source: Pick<RequestSource, 'visitor'>) => HeaderPairs) => {
  const plain = Object.entries(HEADERS);
  const secure = [...plain, ...Object.entries(HTTPS_FOR_A_YEAR)];
  // Behind the operator's proxy, the public URL tells whether browsers use https. An edge in front reports the protocol of every request.
  const isHttps = options.publicUrl.startsWith('https:') && options.edgeSecret === undefined;
  return ({ visitor }) => ((visitor?.isHttps ?? isHttps) ? secure : plain);
};
