// get_status: whose tools these are, what they may use, and how things stand.
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const getStatus = defineTool({
  name: 'get_status',
  title: 'Get status',
  description:
    'Shows whom these tools work for and how things stand: account, plan and limits, the edge, versions, and where it applies this client with its connection and the targets that may be published. Reads only, costs nothing. Call it first when something does not work, or before you open a tunnel with special wishes.',
  input: z.strictObject({}),
  output: z.looseObject({}),
  run: async (host, _input, call) => ({ ...(await host.getStatus(call)) }),
});
