// Tool close_tunnel: closes a tunnel and cuts off its visitors.
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';

export const closeTunnel = defineTool({
  name: 'close_tunnel',
  title: 'Close a tunnel',
  description:
    'Closes a tunnel: the public URL stops working and visitors are disconnected. Use only for tunnels you opened, or for a tunnel the user asked you to close. Any tunnel of the account can be closed, including tunnels opened by the user or a colleague. Closing cannot be undone, and a new tunnel may get a different URL.',
  input: z.strictObject({ tunnel: tunnelArgument }),
  output: z.object({ tunnel_id: z.string(), closed: z.literal(true) }),
  run: async (host, { tunnel }, call) => {
    const { tunnel_id } = await host.closeTunnel(tunnel, call);
    return { tunnel_id, closed: true as const };
  },
});
