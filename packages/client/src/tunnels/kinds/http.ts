// Tunnels of kind http and https: a public name, and requests that can be looked at as they pass. The edge has read them strictly
// and puts them on the stream as the service is to get them, so what is forwarded are bytes here too.
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import { forwardBytes } from '../../local/local-service.ts';
import type { ForwardContext, TunnelKind } from './tunnel-kind.ts';

export const httpKind: TunnelKind = {
  carriesRequests: true,
  localScheme: '',
  defaultPort: 80,
  takesH2c: true,
  localTls: () => null,
  forwardFlow: null,
  capability: null,

  preferredEndpoint: ({ domain, subdomain }, { assignedSubdomain }) =>
    domain !== undefined || subdomain !== undefined || assignedSubdomain === undefined
      ? {}
      : { preferred_subdomain: assignedSubdomain },

  // An own domain is asked for anyway, and is no subdomain for a tunnel that has none.
  remember: ({ label }, { domain }) => (domain === undefined ? { assignedSubdomain: label } : {}),

  forward: (stream, tunnel, context) => {
    const { traffic, asked } = tunnel;
    const { service } = context.head;
    // From the owner's own table and nothing else: the edge names, it does not choose where to.
    const target = service === undefined ? tunnel.target : tunnel.serviceTarget(service);
    if (target === undefined) return refuseService(stream, service ?? '', context);
    const visitorEnd = (visitor: typeof stream) =>
      // Frames of HTTP/2 are nothing that the tap could read.
      asked.local_protocol === 'h2c' ? visitor : context.tap(visitor);
    return forwardBytes(stream, { target, traffic, preface: null, visitorEnd }, context);
  },
};

const refuseService = async (stream: MuxStream, service: string, context: ForwardContext): Promise<void> => {
  const reason = 'this client has no service with this name';
  const fault = new Fault('CLIENT_LOCAL_DIAL', { target: `service '${service}'`, reason });
  stream.refuse({ code: 'dial-refused', text: fault.message });
  context.onDialFailed(fault);
  context.onDone();
};

/** The local service speaks TLS; visitors see no difference. */
export const httpsKind: TunnelKind = {
  ...httpKind,
  localScheme: 'https://',
  defaultPort: 443,
  takesH2c: false,
  localTls: ({ local_tls_verify: verify = true }) => ({ verify }),
};
