// Detects servers that only people on the same machine can reach. Some defaults depend on the result.
import { isLoopbackHost } from '@tunnel/rules/net';

/** The keys of server.toml that determine who can reach the server. */
interface Surroundings {
  readonly server: { readonly host: string; readonly domain: string; readonly trusted_proxies: readonly string[] };
  readonly platform: {
    readonly host: string;
    readonly public_url: string;
    readonly trusted_proxies: readonly string[];
  };
}

/**
 * Whether a configuration is loopback: listeners, domain and public URL are local to this machine, and no proxy is trusted. A single
 * public setting makes the configuration public.
 */
export const isLoopbackConfig = ({ server, platform }: Surroundings): boolean =>
  isLoopbackHost(server.host) &&
  isLoopbackHost(platform.host) &&
  isLoopbackHost(server.domain) &&
  isLoopbackHost(new URL(platform.public_url).hostname) &&
  server.trusted_proxies.length + platform.trusted_proxies.length === 0;
