// The API of the platform: where it is, how it is trusted, and whether a password may go there.
import { isLoopback } from '@tunnel/client';
import { type PlatformAnswer, PlatformClient, type PlatformFetch } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { VERSION } from '../io.ts';
import { hostOf } from './edge-api.ts';
import { callHttp, describeFailure, type HttpTrust } from './http-call.ts';

export interface PlatformEndpoint {
  /** Without a slash at its end. */
  readonly url: string;
  /** Somebody said that clear text may go to another machine. */
  readonly clearTextAllowed: boolean;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
}

export const DEFAULT_PLATFORM = 'http://localhost:8080';

/** Refuses what is no address, and clear text to elsewhere. */
export const checkPlatform = (platform: PlatformEndpoint): PlatformEndpoint => {
  const url = parseUrl(platform.url);
  if (isClearTextElsewhere(url, platform)) throw clearText(url.host);
  return { ...platform, url: `${url.origin}${url.pathname}`.replace(/\/+$/, '') };
};

const isClearTextElsewhere = (url: URL, { clearTextAllowed }: PlatformEndpoint): boolean =>
  url.protocol === 'http:' && !clearTextAllowed && !isLoopback(hostOf(url));

const clearText = (host: string): Fault =>
  new Fault('CLIENT_USAGE', {
    reason: `passwords and tokens would go to ${host} in clear: give an https:// address with --platform, or --no-tls if the network between is yours`,
  });

const parseUrl = (text: string): URL => {
  const refuse = (why: string): Fault =>
    new Fault('CLIENT_USAGE', { reason: `--platform ${why}, as ${DEFAULT_PLATFORM}` });
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refuse('must be an http or https URL');
  // Kept in a file and shown on the screen.
  if (url.username !== '' || url.password !== '') throw refuse('must be without a name and a password');
  return url;
};

export const platformClient = (platform: PlatformEndpoint, accessToken?: string): PlatformClient =>
  new PlatformClient({
    url: platform.url,
    fetch: fetchOf(platform),
    ...(accessToken === undefined ? {} : { accessToken: () => accessToken }),
  });

const fetchOf = (platform: PlatformEndpoint): PlatformFetch => {
  const trust: HttpTrust = {
    loopbackOnly: platform.url.startsWith('http:') && !platform.clearTextAllowed,
    refuseClearText: clearText,
    caFile: platform.caFile,
    insecure: platform.insecure,
  };
  return async (address, { method, headers, body }) => {
    const url = new URL(address);
    const call = {
      method,
      headers: { ...headers, 'user-agent': `tunnel/${VERSION} (${process.platform})` },
      ...(body === undefined ? {} : { body }),
    };
    try {
      const answer = await callHttp(url, call, trust);
      return { status: answer.status, headers: headersOf(answer.headers), text: async () => answer.text };
    } catch (error) {
      throw toFault(platform.url, url, error);
    }
  };
};

const headersOf = (headers: Readonly<Record<string, string | string[] | undefined>>): PlatformAnswer['headers'] => ({
  get: (name) => {
    const value = headers[name];
    return value === undefined ? null : [value].flat().join(', ');
  },
});

const toFault = (shown: string, url: URL, error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const { kind, reason } = describeFailure(url, error);
  if (kind === 'certificate') return new Fault('CLIENT_CERTIFICATE', { server: url.host, reason }, { cause: error });
  const code = kind === 'wrong-kind' ? 'CLIENT_NOT_A_PLATFORM' : 'CLIENT_PLATFORM_UNREACHABLE';
  return new Fault(code, { url: shown, reason }, { cause: error });
};
