// What can go wrong at a proxy, in the words of the catalogue. What a proxy says is a stranger's text: printable, and not much of it.
import { Fault } from '@tunnel/errors';
import { reasonOf } from '../../network/dial-faults.ts';
import type { ServerAddress } from '../../network/endpoint.ts';
import type { Proxy } from './proxy-address.ts';

/** what is repeated of the words of a proxy that refuses */
export const PROXY_WORDS_MAX_CHARS = 200;

/** Trying again can help. */
export const proxyUnreachable = (proxy: Proxy, error: unknown): Fault => {
  if (error instanceof Fault) return error;
  const reason = typeof error === 'string' ? error : reasonOf(error);
  return new Fault('CLIENT_PROXY_UNREACHABLE', { proxy: proxy.text, reason });
};

/** `schemes`: what it offers instead, as of Proxy-Authenticate; empty when it does not say. */
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
