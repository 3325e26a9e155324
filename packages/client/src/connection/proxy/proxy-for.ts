// Finds the proxy for a server: applies the proxy-choice rules, parses the proxy URL, and adds the password.

import type { Secret } from '@tunnel/runtime';
import { type Proxy, parseProxy } from './proxy-address.ts';
import { chooseProxy, type ProxySources, type ProxyTarget } from './proxy-choice.rules.ts';

/** Returns the proxy, or null for a direct connection. Throws a Fault for an invalid proxy URL. */
export type ProxyFor = (target: ProxyTarget) => Proxy | null;

export interface ProxySettings extends ProxySources {
  /** Where the explicit proxy URL comes from, for error messages: `--proxy`, or `proxy` in config.yml. */
  readonly explicitSource: string;
  /** Returns `user:password` for a proxy URL without credentials. Called when a proxy is used. */
  readonly auth: () => Secret | undefined;
}

export const proxyFor =
  (settings: ProxySettings): ProxyFor =>
  (target) => {
    const choice = chooseProxy(settings, target);
    if (choice.kind === 'direct') return null;
    const isExplicit = choice.source === 'proxy';
    return parseProxy(choice.url, {
      source: isExplicit ? settings.explicitSource : choice.source,
      auth: settings.auth(),
      // Proxy URLs in environment variables often omit the scheme. The explicit setting requires a scheme.
      schemeOptional: !isExplicit,
    });
  };
