// Tool get_status: returns the account behind the tools, their permissions and the current state.
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const getStatus = defineTool({
  name: 'get_status',
  title: 'Get status',
  description:
    "Returns the current status: account, plan and limits, edge, versions and, for a local MCP server, the client's connection and the targets allowed for publishing. Call it first when a problem occurs, or before opening a tunnel with special options. Read-only and free.",
  input: z.strictObject({}),
  output: z.looseObject({}),
  run: async (host, _input, call) => ({ ...(await host.getStatus(call)) }),
});
