// After 101: the visitor and the local service, joined, with what passes counted for the tunnel and for the edge.
import { type ByteDuplex, type Guarded, type Splice, splice } from '@tunnel/mux';
import type { Tunnel } from '../../../routing/tunnel.ts';
import type { ServiceRequests } from '../../../upstream/service-requests.ts';
import type { UpstreamStream } from '../../../upstream/upstream.ts';

/** `member` null: its lease is over, and nobody is charged. */
export const joinUpgraded = (
  visitor: ByteDuplex,
  stream: UpstreamStream,
  member: Tunnel | null,
  services: Pick<ServiceRequests, 'onBytes'>,
  owner: Guarded,
  onDone: () => void,
): Splice =>
  splice(visitor, stream, {
    onDone,
    abandon: (error, where) => owner.abandon(error, where),
    onBytes: (direction, count) => {
      if (member === null) return;
      member.counters.addBytes(count);
      const isToClient = direction === 'a-to-b';
      services.onBytes(isToClient ? count : 0, isToClient ? 0 : count);
    },
  });
