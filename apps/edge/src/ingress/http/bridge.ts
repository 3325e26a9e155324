// After 101: bytes both ways between a visitor and the local service, until both have ended.
import { type ByteDuplex, type ByteQueue, type MuxStream, type Splice, splice } from '@tunnel/mux';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { VisitorOwner } from './visitor.ts';

export interface BridgeOptions {
  readonly owner: Pick<VisitorOwner, 'onBytes'>;
  /** Whose bytes they are. */
  readonly tunnel: Tunnel | null;
  /** What the visitor sent before the switch. */
  readonly early: ByteQueue | null;
  readonly onDone: () => void;
}

export const bridge = (visitor: ByteDuplex, service: MuxStream, options: BridgeOptions): Splice => {
  const { owner, tunnel, early, onDone } = options;
  while (early !== null && early.length > 0) {
    const piece = early.shift(early.length);
    service.write(piece, 0, piece.length, false);
  }
  return splice(visitor, service, {
    onBytes: (direction, count) => {
      if (tunnel === null) return;
      tunnel.counters.bytes += count;
      if (direction === 'a-to-b') owner.onBytes(tunnel, count, 0);
      else owner.onBytes(tunnel, 0, count);
    },
    onDone,
  });
};
