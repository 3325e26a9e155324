// Tool list_pools: lists the account's load-balanced groups and their members.
import { platformPools } from '@tunnel/contract';
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const listPools = defineTool({
  name: 'list_pools',
  title: 'List groups',
  description:
    "Lists the account's groups (load-balanced tunnels, also called pools) with their members, the health of every member and the reason of the last failed health check. Use it when a group returns errors or distributes requests unevenly. Read-only and free. For tunnels without a group, use list_tunnels.",
  input: z.strictObject({}),
  output: z.object(platformPools.shape),
  list: 'groups',
  run: (host, _input, call) => host.listPools(call),
});
