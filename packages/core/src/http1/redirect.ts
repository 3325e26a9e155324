// `plain_http = "redirect"`: the same request, over TLS.
import type { OwnResponse } from './own-response.ts';
import type { RequestHead } from './request-head.ts';

/** 308 keeps method and body. Host and path come from a parsed head, so neither can end the line or lead elsewhere. */
export const redirectToHttps = (head: Pick<RequestHead, 'host' | 'path'>, httpsPort: number): OwnResponse => {
  const port = httpsPort === 443 ? '' : `:${httpsPort}`;
  const path = head.path === '*' ? '/' : head.path;
  return { status: 308, headers: [['location', `https://${head.host}${port}${path}`]], body: '' };
};
