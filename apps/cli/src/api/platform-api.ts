// The platform API: its address, its TLS settings, and the check that a password may be sent there.
import { isLoopbackHost, type ProxyFor } from '@tunnel/client';
import { type PlatformAnswer, PlatformClient, type PlatformFetch } from '@tunnel/contract';
import type { Fault } from '@tunnel/errors';
import { VERSION } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { callHttp, faultOfCall, type HttpTrust, hostOf, parseHttpUrl } from './http-call.ts';

export interface PlatformEndpoint {
  /** Base URL of the platform, without a trailing slash. */
  readonly url: string;
  /** True if the user has allowed unencrypted connections to another computer. */
  readonly clearTextAllowed: boolean;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
}

export const DEFAULT_PLATFORM = 'http://localhost:8080';

/**
 * Checks the platform's address. Rejects an invalid URL, and an unencrypted connection to another computer without the user's permission.
 */
export const checkPlatform = (platform: PlatformEndpoint): PlatformEndpoint => {
  const url = parseHttpUrl(platform.url, '--platform', DEFAULT_PLATFORM);
  if (isClearTextElsewhere(url, platform)) throw clearText(url.host);
  return { ...platform, url: `${url.origin}${url.pathname}`.replace(/\/+$/, '') };
};

const isClearTextElsewhere = (url: URL, { clearTextAllowed }: PlatformEndpoint): boolean =>
  url.protocol === 'http:' && !clearTextAllowed && !isLoopbackHost(hostOf(url));

const clearText = (host: string): Fault =>
  misuse(
    `your password would be sent to ${host} unencrypted. Use an https:// URL with --platform, or --no-tls on a network you trust.`,
  );

export const platformClient = (
  platform: PlatformEndpoint,
  proxyFor: ProxyFor,
  accessToken?: string,
  withinMs?: number,
): PlatformClient =>
  new PlatformClient({
    url: platform.url,
    fetch: fetchOf(platform, proxyFor, withinMs),
    ...(accessToken === undefined ? {} : { accessToken: () => accessToken }),
  });

const FAILURES = { wrongKind: 'CLIENT_NOT_A_PLATFORM', unreachable: 'CLIENT_PLATFORM_UNREACHABLE' } as const;

const fetchOf = (platform: PlatformEndpoint, proxyFor: ProxyFor, withinMs?: number): PlatformFetch => {
  const trust: HttpTrust = {
    loopbackOnly: platform.url.startsWith('http:') && !platform.clearTextAllowed,
    refuseClearText: clearText,
    caFile: platform.caFile,
    insecure: platform.insecure,
    proxyFor,
  };
  return async (address, { method, headers, body }) => {
    const url = new URL(address);
    const call = {
      method,
      headers: { ...headers, 'user-agent': `tunnel/${VERSION} (${process.platform})` },
      ...(body === undefined ? {} : { body }),
      withinMs,
    };
    try {
      const answer = await callHttp(url, call, trust);
      return { status: answer.status, headers: headersOf(answer.headers), text: async () => answer.text };
    } catch (error) {
      throw faultOfCall(error, url, platform.url, FAILURES);
    }
  };
};

const headersOf = (headers: Readonly<Record<string, string | string[] | undefined>>): PlatformAnswer['headers'] => ({
  get: (name) => {
    const value = headers[name];
    return value === undefined ? null : [value].flat().join(', ');
  },
});
