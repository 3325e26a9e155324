// Query for the account's API keys, and texts for using a new key: shell commands and configurations of MCP hosts.
import { queryOptions } from '@tanstack/react-query';
import type { ApiToken, PlatformClient } from '@tunnel/contract';
import { httpTunnelCommand, type ServerAddress, serverArgs } from '../../shared/client-commands.ts';
import { plural } from '../../ui/format.ts';

export interface KeyCommands {
  /** Command with the key in an environment variable. */
  readonly withVariable: string;
  /** Command that stores the key in a file readable only by its owner. */
  readonly withFile: string;
}

const PORT = 3000;

/** Returns commands to paste into a shell. The commands name the server, because a computer with an API key needs no `tunnel login`. */
export const keyCommands = (token: string, label: string, server: ServerAddress | undefined): KeyCommands => {
  const file = `~/.tunnel/${fileNameOf(label)}.key`;
  const tunnel = httpTunnelCommand(PORT, server);
  return {
    withVariable: `TUNNEL_API_KEY=${token} ${tunnel}`,
    withFile: `(umask 077; mkdir -p ~/.tunnel && echo ${token} > ${file}) && ${tunnel} --token-file ${file}`,
  };
};

/**
 * Returns the name of a key's file, without the extension `.key`. Derived from the key's label, with characters that need no quotes in a
 * shell. With the extension, the file cannot overwrite `~/.tunnel/key`, which belongs to `tunnel login`.
 */
export const fileNameOf = (label: string): string => {
  const name = label
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
  return name === '' ? 'tunnel' : name;
};

export interface McpConfigs {
  /** Configuration for a local MCP server. The MCP host starts the client, which can open tunnels to this computer. */
  readonly stdio: string;
  /** Configuration for the platform's MCP server. Requires no installation, but cannot open tunnels. */
  readonly remote: string;
}

/** Placeholder for the path of the checkout, which the dashboard cannot know. */
export const CHECKOUT = '/path/to/tunnel';

/**
 * Returns entries for the configuration file of an MCP host. The program is named by its path and not by `npx`: hosts start programs in
 * an arbitrary folder, where `npx` would download any package published under the name and hand the key to its author.
 */
export const mcpConfigs = (token: string, platformUrl: string, server: ServerAddress | undefined): McpConfigs => ({
  stdio: hostConfig({
    command: 'node',
    args: [`${CHECKOUT}/apps/cli/bin/tunnel-mcp.mjs`, ...serverArgs(server)],
    env: { TUNNEL_API_KEY: token },
  }),
  remote: hostConfig({
    type: 'http',
    url: new URL('/mcp', platformUrl).href,
    headers: { Authorization: `Bearer ${token}` },
  }),
});

const hostConfig = (tunnel: object): string => JSON.stringify({ mcpServers: { tunnel } }, null, 2);

export const KEYS_KEY = ['keys'] as const;

/** Refresh interval of the list of keys, so that the time of last use stays current. */
const REFRESH_MS = 10_000;

export const keysQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: KEYS_KEY, queryFn: () => api.keys(), refetchInterval: REFRESH_MS });

/** Returns the effect of revoking a key on the live tunnels that use the key. */
export const liveTunnelsText = ({ active_tunnels: active }: Pick<ApiToken, 'active_tunnels'>): string => {
  if (active === undefined) return 'Tunnels using this key are closed within 2 seconds.';
  return active === 0 ? 'No live tunnels use this key.' : `Closes ${plural(active, 'live tunnel')} within 2 seconds.`;
};
