// Whether a server is for people at its own machine only. Some defaults depend on it.
import { isLoopbackHost } from '@tunnel/rules/net';

/** The keys of server.toml that say who can reach it. */
interface Surroundings {
  readonly server: { readonly host: string; readonly domain: string; readonly trusted_proxies: readonly string[] };
  readonly platform: {
    readonly host: string;
    readonly public_url: string;
    readonly trusted_proxies: readonly string[];
  };
}

/** A loopback configuration: listeners, domain and public address are of this machine, and no proxy stands in front. A single sign of others makes it public. */
export const isLoopbackConfig = ({ server, platform }: Surroundings): boolean =>
  isLoopbackHost(server.host) &&
  isLoopbackHost(platform.host) &&
  isLoopbackHost(server.domain) &&
  isLoopbackHost(new URL(platform.public_url).hostname) &&
  server.trusted_proxies.length + platform.trusted_proxies.length === 0;
