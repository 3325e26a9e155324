// What the relay has carried and refused since the start.
import type { StreamCode } from '@tunnel/protocol';

/** Why a visitor was turned away: before the stream was asked for, or by what the client answered. */
export type RefusalReason = 'policy' | 'tunnel-limit' | 'no-tunnel' | 'no-healthy' | 'no-carrier' | StreamCode;

/** Plain numbers, because they change with every chunk; metrics read them. */
export class RelayTotals {
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  readonly refused = new Map<RefusalReason, number>();

  countRefusal(reason: RefusalReason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}
