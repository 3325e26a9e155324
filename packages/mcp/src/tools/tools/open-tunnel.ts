// Tool open_tunnel: publishes a service of this computer until the tunnel is closed or the MCP server exits. The host decides which
// services can be published.
import { Fault } from '@tunnel/errors';
import * as z from 'zod';
import { text, wholeNumber } from '../arguments.ts';
import { defineTool } from '../tool.ts';

const PORT = [1, 65_535] as const;
const TTL_SECS = [60, 86_400] as const;

type Protocol = 'http' | 'https' | 'tcp' | 'tls' | 'udp' | 'p2p';

/**
 * Arguments that have a meaning only for certain protocols. With another protocol, the argument is rejected, because the caller probably
 * meant a different tunnel.
 */
const PROTOCOLS_OF: ReadonlyMap<string, readonly Protocol[]> = new Map([
  ['subdomain', ['http', 'https', 'tls']],
  ['domain', ['http', 'https', 'tls']],
  ['host_header', ['http', 'https']],
  ['remote_port', ['tcp', 'udp']],
  ['p2p_name', ['p2p']],
  ['p2p_service', ['p2p']],
] as const);

const input = z
  .strictObject({
    protocol: z.enum(['http', 'https', 'tcp', 'tls', 'udp', 'p2p']).meta({
      description:
        '`http`: web servers and webhooks (visitors use https if the edge has a certificate). `https`: the local service uses TLS. `tls`: TLS is passed through to the local service unread, on the host of `subdomain` or `domain`. `tcp`, `udp`: any other service. `p2p`: a single other computer with the same secret.',
    }),
    local_port: wholeNumber('The port of the local service.', ...PORT),
    local_host: text(
      'The host of the local service (default: 127.0.0.1). Other hosts are rejected unless allowed by the user.',
    ).optional(),
    name: text('The name of the tunnel in lists.', 100).optional(),
    subdomain: text(
      'http, https and tls: the first part of the public host name (default: a random name).',
      63,
    ).optional(),
    domain: text(
      'http, https and tls: a domain verified by the user (`tunnel domains add`), instead of `subdomain`.',
      253,
    ).optional(),
    remote_port: wholeNumber('tcp and udp: the public port (default: any free port).', ...PORT).optional(),
    host_header: text(
      'http and https: the Host header sent to the local service: `keep`, `rewrite`, or a host name.',
    ).optional(),
    p2p_name: text('p2p: the name used by the other computer to connect. Required for p2p.', 63).optional(),
    p2p_service: z
      .enum(['tcp', 'udp'])
      .optional()
      .meta({ description: 'p2p: the protocol of the local service (default: tcp).' }),
    ttl_secs: wholeNumber('Close the tunnel automatically after this many seconds.', ...TTL_SECS).optional(),
  })
  .superRefine((given, context) => {
    for (const [field, protocols] of PROTOCOLS_OF) {
      if (!(field in given) || protocols.includes(given.protocol)) continue;
      const message = `is for ${protocols.join(' and ')}, not for ${given.protocol}`;
      context.addIssue({ code: 'custom', path: [field], message });
    }
    if (given.domain !== undefined && given.subdomain !== undefined) {
      context.addIssue({ code: 'custom', path: ['domain'], message: 'cannot be combined with `subdomain`' });
    }
    if (given.protocol !== 'p2p' || given.p2p_name !== undefined) return;
    context.addIssue({ code: 'custom', path: ['p2p_name'], message: 'is required for p2p tunnels' });
  });

export const openTunnel = defineTool({
  name: 'open_tunnel',
  title: 'Open a tunnel',
  description:
    "Publishes a local service on the internet and returns the public URL. ANYONE with the URL can reach the service without a password: open only services the user wants to publish, and prefer `ttl_secs`. Start the local service first. Do not open a second tunnel to the same port: check list_tunnels. Only targets allowed by the user can be published (default: loopback ports 1024-65535), at most 10 at a time. The tunnels close when this MCP server exits. Open tunnels count toward the plan's limit, and traffic counts as usage.",
  input,
  output: z.object({
    name: z.string(),
    tunnel_id: z.string(),
    protocol: z.string(),
    public_url: z.string(),
    local: z.string(),
    inspect_url: z.string().nullable(),
    warnings: z.array(z.string()),
  }),
  run: async (host, given, call) => {
    if (host.openTunnel === undefined) throw new Fault('INTERNAL', {}, { internal: 'the host cannot open tunnels' });
    const opened = await host.openTunnel(given, call);
    return { ...opened, warnings: [...opened.warnings] };
  },
});
