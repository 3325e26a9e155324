// The keys of the account as the page asks for them, and the commands that use a new one.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';
import { httpTunnelCommand, type ServerAddress } from '../../app/client-commands.ts';

export interface KeyCommands {
  /** With the key in a variable of the one command. */
  readonly withVariable: string;
  /** With the key in a file that its owner alone can read. */
  readonly withFile: string;
}

const PORT = 3000;

/** Ready to be pasted into a shell. `server` undefined: where the client goes by itself. */
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

export const KEYS_KEY = ['keys'] as const;

/** When a key was last used changes by itself. */
const REFRESH_MS = 10_000;

export const keysQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: KEYS_KEY, queryFn: () => api.keys(), refetchInterval: REFRESH_MS });

/** Asked when a key is about to be revoked: always as it is now. */
export const activeTunnelsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['active-tunnels'],
    queryFn: async () => (await api.usage()).active_tunnels,
    staleTime: 0,
    retry: false,
  });
