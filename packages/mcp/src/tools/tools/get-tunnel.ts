// Tool get_tunnel: returns one tunnel by its id or name.
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';
import { shownTunnel } from './list-tunnels.ts';

export const getTunnel = defineTool({
  name: 'get_tunnel',
  title: 'Get a tunnel',
  description:
    'Returns a tunnel with its public URL, health, client and traffic. Use it to check whether a tunnel is open and whether requests arrive (`request_count`). Read-only and free. For the requests, use list_requests.',
  input: z.strictObject({ tunnel: tunnelArgument }),
  output: z.object({ tunnel: shownTunnel }),
  run: async (host, { tunnel }, call) => ({ tunnel: await host.getTunnel(tunnel, call) }),
});
