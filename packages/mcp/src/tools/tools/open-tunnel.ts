// open_tunnel: publishes a service of this machine until it is closed or this server ends. What may be published is the host's rule.
import { Fault } from '@tunnel/errors';
import * as z from 'zod';
import { text, wholeNumber } from '../arguments.ts';
import { defineTool } from '../tool.ts';

const PORT = [1, 65_535] as const;
const TTL_SECS = [60, 86_400] as const;

type Protocol = 'http' | 'https' | 'tcp' | 'tls' | 'udp' | 'p2p';

/** Arguments that say nothing about other protocols: one that is given there was meant for another tunnel. */
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
        '`http` for web servers and webhooks (visitors get https where the edge has it); `https` when the local service itself speaks TLS; `tls` when its TLS is to reach the visitors unread, at the host of `subdomain` or `domain`; `tcp` and `udp` for anything else; `p2p` for one other machine that has the same secret.',
    }),
    local_port: wholeNumber('The port that the local service listens on.', ...PORT),
    local_host: text(
      'The host of the local service; 127.0.0.1 when left out. Other hosts are refused unless the person allowed them.',
    ).optional(),
    name: text('What the tunnel is called in lists.', 100).optional(),
    subdomain: text(
      'http, https and tls: the first part of the public host name. Left out: a random one.',
      63,
    ).optional(),
    domain: text(
      'http, https and tls: a host name that the person has proven to be theirs (`tunnel domains add`), in place of `subdomain`.',
      253,
    ).optional(),
    remote_port: wholeNumber('tcp and udp: the public port. Left out: a free one.', ...PORT).optional(),
    host_header: text(
      'http and https: the Host header that the local service sees: `keep`, `rewrite`, or a host name.',
    ).optional(),
    p2p_name: text('p2p: the name under which the other machine finds it; required there.', 63).optional(),
    p2p_service: z
      .enum(['tcp', 'udp'])
      .optional()
      .meta({ description: 'p2p: what the local service speaks; tcp when left out.' }),
    ttl_secs: wholeNumber('Close the tunnel by itself after so many seconds.', ...TTL_SECS).optional(),
  })
  .superRefine((given, context) => {
    for (const [field, protocols] of PROTOCOLS_OF) {
      if (!(field in given) || protocols.includes(given.protocol)) continue;
      const message = `goes with ${protocols.join(' and ')}, not with ${given.protocol}`;
      context.addIssue({ code: 'custom', path: [field], message });
    }
    if (given.domain !== undefined && given.subdomain !== undefined) {
      context.addIssue({ code: 'custom', path: ['domain'], message: 'goes in place of `subdomain`, not with it' });
    }
    if (given.protocol !== 'p2p' || given.p2p_name !== undefined) return;
    context.addIssue({ code: 'custom', path: ['p2p_name'], message: 'is missing: a p2p tunnel is found by its name' });
  });

export const openTunnel = defineTool({
  name: 'open_tunnel',
  title: 'Open a tunnel',
  description:
    'Makes a service of this machine reachable from the internet and returns its public URL. ANYONE who has the URL reaches the service, without a password of ours: open only what the person wants to be public, and prefer `ttl_secs`. Only targets that the person allowed can be opened (loopback ports 1024-65535 by default), at most 10 at once; all of them close when this server ends. It counts as a tunnel of the plan, and its traffic as usage. Start the local service first; do not open a second tunnel to the same port (list_tunnels shows what is there).',
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
    if (host.openTunnel === undefined) throw new Fault('INTERNAL', {}, { internal: 'the host opens no tunnels' });
    const opened = await host.openTunnel(given, call);
    return { ...opened, warnings: [...opened.warnings] };
  },
});
