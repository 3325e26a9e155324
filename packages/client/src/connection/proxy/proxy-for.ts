// Which proxy each server is reached by: the rule of proxy-choice, with the proxy's address read and its password put in.

import type { Secret } from '@tunnel/runtime';
import { type Proxy, parseProxy } from './proxy-address.ts';
import { chooseProxy, type ProxySources, type ProxyTarget } from './proxy-choice.rules.ts';

/** null: direct. Throws a Fault for a proxy that is none. */
export type ProxyFor = (target: ProxyTarget) => Proxy | null;

export interface ProxySettings extends ProxySources {
  /** Who set `explicit`, for refusals: `--proxy`, or `proxy` of config.yml. */
  readonly explicitSource: string;
  /** user:password, for a proxy whose URL has none. Read when a proxy is used. */
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
      // In the variables of an environment that is usual; who writes it for this program reads its docs.
      schemeOptional: !isExplicit,
    });
  };
