// Tunnels of kind http and https: a public name, and requests that can be looked at as they pass. The edge has read them strictly
// and puts them on the stream as the service is to get them, so what is forwarded are bytes here too.
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import { forwardBytes } from '../../local/local-service.ts';
import { domainFields } from './own-domain.ts';
import type { ForwardContext, KindSpec, TunnelKind } from './tunnel-kind.ts';

/** Of http and https. */
const BOTH_KEYS: TunnelKind['keys'] = [
  'subdomain',
  'domain',
  'hostHeader',
  'localProtocol',
  'localTlsVerify',
  'capture',
  'localSocket',
  'services',
];

export const httpKind: TunnelKind = {
  carriesRequests: true,
  localScheme: '',
  defaultPort: 80,
  takesH2c: true,
  localTls: () => null,
  forwardFlow: null,
  capability: null,
  keys: [...BOTH_KEYS, 'files'],

  endpointFields: (spec, { assignedSubdomain }) => ({
    ...nameFields(spec, assignedSubdomain),
    host_header: spec.hostHeader ?? 'keep',
    local_protocol: spec.localProtocol ?? 'http1',
    capture: spec.capture ?? true,
  }),

  // An own domain is asked for anyway, and is no subdomain for a tunnel that has none.
  remember: ({ label }, { domain }) => (domain === undefined ? { assignedSubdomain: label } : {}),

  forward: (stream, tunnel, context) => {
    const { traffic, spec } = tunnel;
    const { service } = context.head;
    // From the owner's own table and nothing else: the edge names, it does not choose where to.
    const target = service === undefined ? tunnel.target : tunnel.serviceTarget(service);
    if (target === undefined) return refuseService(stream, service ?? '', context);
    const visitorEnd = (visitor: typeof stream) =>
      // Frames of HTTP/2 are nothing that the tap could read.
      spec.localProtocol === 'h2c' ? visitor : context.tap(visitor);
    return forwardBytes(stream, { target, traffic, preface: null, visitorEnd }, context);
  },
};

const refuseService = async (stream: MuxStream, service: string, context: ForwardContext): Promise<void> => {
  const reason = 'this client has no service of that name';
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
  keys: BOTH_KEYS,
  localTls: ({ localTlsVerify }) => ({ verify: localTlsVerify ?? true }),
};

const nameFields = ({ domain, subdomain }: KindSpec, assigned: string | undefined) => {
  if (domain !== undefined) return domainFields(domain);
  if (subdomain !== undefined) return { subdomain };
  return assigned === undefined ? {} : { preferred_subdomain: assigned };
};
