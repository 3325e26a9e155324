// The keys of the account as the page asks for them, and what uses a new one: commands, and the configuration of MCP hosts.
import { queryOptions } from '@tanstack/react-query';
import type { ApiToken, PlatformClient } from '@tunnel/contract';
import { httpTunnelCommand, type ServerAddress, serverArgs } from '../../shared/client-commands.ts';
import { plural } from '../../ui/format.ts';

export interface KeyCommands {
  /** With the key in a variable of the one command. */
  readonly withVariable: string;
  /** With the key in a file that its owner alone can read. */
  readonly withFile: string;
}

const PORT = 3000;

/** Ready to be pasted into a shell. The commands name the server, because a computer with an API key needs no `tunnel login`. */
export const keyCommands = (token: string, label: string, server: ServerAddress | undefined): KeyCommands => {
  const file = `~/.tunnel/${fileNameOf(label)}.key`;
  const tunnel = httpTunnelCommand(PORT, server);
  return {
    withVariable: `TUNNEL_API_KEY=${token} ${tunnel}`,
    withFile: `(umask 077; mkdir -p ~/.tunnel && echo ${token} > ${file}) && ${tunnel} --token-file ${file}`,
  };
};

/** Nothing that a shell would read as more than a word; never `key`, where `tunnel login` has its own. */
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
  /** The host starts our client: it can open tunnels to this computer. */
  readonly stdio: string;
  /** The host asks the platform: nothing is installed, and no tunnel can be opened. */
  readonly remote: string;
}

/** In the place of the checkout, which a page cannot know. */
export const CHECKOUT = '/path/to/tunnel';

/**
 * For the file in which an MCP host keeps its servers. The program is named by its path: hosts start it in a folder of their own,
 * where `npx` would fetch whatever a stranger has published under that name, and hand it the key.
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

/** When a key was last used changes by itself. */
const REFRESH_MS = 10_000;

export const keysQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: KEYS_KEY, queryFn: () => api.keys(), refetchInterval: REFRESH_MS });

/** What revoking a key does to tunnels that are open with it now. */
export const liveTunnelsText = ({ active_tunnels: active }: Pick<ApiToken, 'active_tunnels'>): string => {
  if (active === undefined) return 'Tunnels using this key are closed within 2 seconds.';
  return active === 0 ? 'No live tunnels use this key.' : `Closes ${plural(active, 'live tunnel')} within 2 seconds.`;
};
