// close_tunnel: ends a tunnel; its visitors are cut off.
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';

export const closeTunnel = defineTool({
  name: 'close_tunnel',
  title: 'Close a tunnel',
  description:
    'Ends a tunnel: its public URL stops working and visitors are cut off. It cannot be undone; a new tunnel may get another URL. It works on every tunnel of this account, also on those that the person or a colleague started: close only what you opened yourself, unless you were asked to close that very tunnel.',
  input: z.strictObject({ tunnel: tunnelArgument }),
  output: z.object({ tunnel_id: z.string(), closed: z.literal(true) }),
  run: async (host, { tunnel }, call) => {
    const { tunnel_id } = await host.closeTunnel(tunnel, call);
    return { tunnel_id, closed: true as const };
  },
});
