// Faults of a proxy, from the error catalogue. Text sent by a proxy is untrusted, so it is made printable and shortened.
import { Fault } from '@tunnel/errors';
import { reasonOf } from '../../network/dial-faults.ts';
import type { ServerAddress } from '../../network/endpoint.ts';
import type { Proxy } from './proxy-address.ts';

/** Maximum length of a proxy's error text quoted in a fault. */
export const PROXY_WORDS_MAX_CHARS = 200;

/** Fault for an unreachable proxy. A retry can help. */
export const proxyUnreachable = (proxy: Proxy, error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const reason = typeof error === 'string' ? error : reasonOf(error);
  return new Fault('CLIENT_PROXY_UNREACHABLE', { proxy: proxy.text, reason });
};

/** Fault for rejected or missing credentials. `schemes` are the schemes from Proxy-Authenticate, empty if the proxy sent none. */
export const proxyAuthFault = (proxy: Proxy, schemes: readonly string[]): Fault => {
  const offersBasic = schemes.length === 0 || schemes.some((scheme) => scheme.toLowerCase() === 'basic');
  const wanted =
    proxy.credentials === null
      ? 'the proxy requires a user name and password'
      : 'the proxy rejected the user name and password';
  const foreign = `the proxy requires ${printableWords(schemes.join(', '))}, but this client supports only Basic`;
  return new Fault('CLIENT_PROXY_AUTH', { proxy: proxy.text, reason: offersBasic ? wanted : foreign });
};

export const proxyRefused = (proxy: Proxy, target: ServerAddress, words: string): Fault =>
  new Fault('CLIENT_PROXY_REFUSED', { proxy: proxy.text, server: target.text, reason: printableWords(words) });

export const printableWords = (text: string): string =>
  text
    .replace(/[^\x21-\x7e]+/g, ' ')
    .trim()
    .slice(0, PROXY_WORDS_MAX_CHARS);
