// Tunnels of kind http and https: a public name, and requests that can be observed. The edge has parsed every request strictly and sends
// the bytes meant for the service, so the client forwards bytes.
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

  // A custom domain is always requested explicitly, and must not be remembered as a subdomain.
  remember: ({ label }, { domain }) => (domain === undefined ? { assignedSubdomain: label } : {}),

  forward: (stream, tunnel, context) => {
    const { traffic, asked } = tunnel;
    const { service } = context.head;
    // Looks up the service only in the owner's table: the edge sends a name, not an address.
    const target = service === undefined ? tunnel.target : tunnel.serviceTarget(service);
    if (target === undefined) return refuseService(stream, service ?? '', context);
    const visitorEnd = (visitor: typeof stream) =>
      // HTTP/2 frames are not observed, because the tap can only parse HTTP/1.
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

/** Kind of tunnels to a local service with TLS. Visitors see no difference to http tunnels. */
export const httpsKind: TunnelKind = {
  ...httpKind,
  localScheme: 'https://',
  defaultPort: 443,
  takesH2c: false,
  localTls: ({ local_tls_verify: verify = true }) => ({ verify }),
};
