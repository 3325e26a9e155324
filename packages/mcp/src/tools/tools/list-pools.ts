// list_pools: the load-balanced groups of the account and their members.
import { platformPools } from '@tunnel/contract';
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const listPools = defineTool({
  name: 'list_pools',
  title: 'List pools',
  description:
    'Lists the load-balanced pools (groups) of this account: each with its members, which of them are healthy, and why a health check failed last. Reads only, costs nothing. Use it when a pool answers with errors or unevenly. Tunnels without a group are not in it: list_tunnels has them.',
  input: z.strictObject({}),
  output: z.object(platformPools.shape),
  list: 'groups',
  run: (host, _input, call) => host.listPools(call),
});
