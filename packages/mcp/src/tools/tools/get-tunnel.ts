// get_tunnel: one tunnel, by its id or its name.
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';
import { shownTunnel } from './list-tunnels.ts';

export const getTunnel = defineTool({
  name: 'get_tunnel',
  title: 'Get a tunnel',
  description:
    'Shows one tunnel: its public URL, health, client and traffic so far. Reads only, costs nothing. Use it to check whether a tunnel is up and whether requests arrive (`request_count`). It does not show requests: list_requests does.',
  input: z.strictObject({ tunnel: tunnelArgument }),
  output: z.object({ tunnel: shownTunnel }),
  run: async (host, { tunnel }, call) => ({ tunnel: await host.getTunnel(tunnel, call) }),
});
