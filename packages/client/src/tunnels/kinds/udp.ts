// Tunnels of kind udp: a public port, and datagrams forwarded whole and once. A visitor's address and port identify a flow.

import { Fault } from '@tunnel/errors';
import type { DatagramStream } from '@tunnel/mux';
import { CAPABILITY, type StreamHead } from '@tunnel/protocol';
import { proxyHeader, readHostPort } from '@tunnel/rules/net';
import type { LocalAddress } from '../../local/local-addresses.ts';
import { LocalFlow } from '../../local/local-flow.ts';
import { reachedAt, tcpKind } from './tcp.ts';
import type { FlowContext, ForwardedTunnel, TunnelKind } from './tunnel-kind.ts';

/** Maximum idle time of an edge. Used by the client if the tunnel sets no idle time. */
const FLOW_IDLE_MAX_SECS = 3600;

export const udpKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.DATAGRAM,
  forward: null,

  forwardFlow: async (stream, head, tunnel, context) => {
    const { flows, clock } = context;
    if (flows.size >= flows.limit) {
      const fault = new Fault('CLIENT_FLOW_LIMIT', { limit: flows.limit });
      stream.refuse({ code: 'limit', text: fault.message });
      context.onLocalError(fault);
      return context.onDone();
    }
    const known = tunnel.addresses.current(clock.monotonic());
    const address = known ?? (await lookUp(stream, tunnel, context));
    if (address === null) return context.onDone();
    startFlow(stream, head, tunnel, context, address);
  },
};

const lookUp = async (
  stream: DatagramStream,
  { addresses }: ForwardedTunnel,
  context: FlowContext,
): Promise<LocalAddress | null> => {
  try {
    return await addresses.lookup(context.clock.monotonic());
  } catch (error) {
    context.onLocalError(error);
    stream.refuse({ code: 'dial-refused', text: 'cannot resolve the local host' });
    return null;
  }
};

const startFlow = (
  stream: DatagramStream,
  { visitor }: StreamHead,
  { target, traffic, unreported, asked, addresses, publicUrl }: ForwardedTunnel,
  { flows, clock, onDone, onLocalError, report }: FlowContext,
  address: LocalAddress,
): void => {
  const header = asked.proxy_protocol === undefined ? null : proxyHeader(readHostPort(visitor), reachedAt(publicUrl));
  const flow: LocalFlow = new LocalFlow(
    // The port of a udp tunnel is 0 only for targets without an address, which were rejected earlier.
    { stream, address, port: target.kind === 'address' ? target.port : 0, header, memory: flows.memory },
    {
      onDropped: (direction, reason, datagrams) => {
        traffic.dropped(reason, datagrams);
        unreported.add(visitor, direction, reason, datagrams);
      },
      onLocalError,
      mayBeElsewhere: (tried) => addresses.refused(tried),
      onDone: () => {
        flows.delete(flow);
        traffic.ended(flow);
        onDone();
      },
      report,
    },
    clock.monotonic(),
  );
  traffic.started();
  traffic.joined(flow);
  flows.add(flow, (asked.idle_secs ?? FLOW_IDLE_MAX_SECS) * 1000);
  flow.connect();
};
