// Every answer of the platform: the id of its request, and the headers that tell browsers how to treat it.
import { randomId, type Secret } from '@tunnel/runtime';
import type { RequestSource } from './trusted-edge-header.ts';

export const newRequestId = (): string => randomId('req');

/** HTML pages replace the content security policy with their own. */
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

/** Returns the headers of an answer by the source of its request. Only answers over https tell the browser to stay with https. */
export const headersOfEveryAnswer = (options: {
  readonly publicUrl: string;
  readonly edgeSecret?: Secret | undefined;
}): ((source: Pick<RequestSource, 'visitor'>) => HeaderPairs) => {
  const plain = Object.entries(HEADERS);
  const secure = [...plain, ...Object.entries(HTTPS_FOR_A_YEAR)];
  // Behind the operator's proxy the public URL says whether browsers use https. An edge in front says it of each request.
  const isHttps = options.publicUrl.startsWith('https:') && options.edgeSecret === undefined;
  return ({ visitor }) => ((visitor?.isHttps ?? isHttps) ? secure : plain);
};
