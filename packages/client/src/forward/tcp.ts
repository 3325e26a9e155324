// Tunnels of kind tcp: a public port, and bytes as they come.
import type { TunnelKind } from './kinds.ts';
import { forwardBytes } from './local-service.ts';

export const tcpKind: TunnelKind = {
  carriesRequests: false,
  localScheme: '',
  defaultPort: null,
  takesH2c: false,
  localTls: () => null,
  forwardFlow: null,
  capability: null,
  keys: ['remotePort', 'localSocket'],

  endpointFields: ({ remotePort }, { assignedPort }) => {
    if (remotePort !== undefined) return { remote_port: remotePort };
    return assignedPort === undefined ? {} : { preferred_port: assignedPort };
  },

  remember: ({ assigned_port: assignedPort }) => (assignedPort === undefined ? {} : { assignedPort }),

  forward: (stream, { target, traffic }, context) =>
    forwardBytes(stream, { target, traffic, visitorEnd: (visitor) => visitor }, context),
};
