// Tool list_tunnels: lists the account's open tunnels or ended tunnels.
import { edgeTunnel, tunnelLogEntry } from '@tunnel/contract';
import * as z from 'zod';
import { wholeNumber } from '../arguments.ts';
import { defineTool } from '../tool.ts';
import { MCP_TOOL_LIMITS } from '../tool-limits.ts';

/** Default number of tunnels in a result, which a model can read at once. */
const TOOL_TUNNELS_DEFAULT = 20;

const { TOOL_TUNNELS_MAX } = MCP_TOOL_LIMITS;

/** Schema of a tunnel: an open tunnel has the fields of the edge, an ended tunnel the fields of the log. */
export const shownTunnel = z.union([edgeTunnel, tunnelLogEntry]);

export const listTunnels = defineTool({
  name: 'list_tunnels',
  title: 'List tunnels',
  description:
    'Lists the open tunnels of the account with id, name, public URL, health and traffic, newest first. Use it to find the tunnel id required by other tools; with a known id, get_tunnel returns less text. `state: "ended"` lists closed tunnels. Read-only and free.',
  input: z.strictObject({
    state: z
      .enum(['active', 'ended'])
      .default('active')
      .meta({ description: '`active`: open tunnels. `ended`: closed tunnels.' }),
    limit: wholeNumber('Maximum number of tunnels.', 1, TOOL_TUNNELS_MAX).default(TOOL_TUNNELS_DEFAULT),
  }),
  output: z.object({ tunnels: z.array(shownTunnel), truncated: z.boolean() }),
  list: 'tunnels',
  run: async (host, { state, limit }, call) => {
    const { tunnels, truncated } = await host.listTunnels({ state, limit }, call);
    return { tunnels: tunnels.slice(0, limit), truncated: truncated || tunnels.length > limit };
  },
});
