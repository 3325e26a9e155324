// Totals of relayed and rejected visitors' connections since the start.
import type { StreamCode } from '@tunnel/protocol';

/** Reason for rejecting a visitor: a check before the stream was opened, or the client's answer. */
export type RefusalReason = 'policy' | 'tunnel-limit' | 'no-tunnel' | 'no-healthy' | 'no-carrier' | StreamCode;

/** Totals of relayed connections. Plain numbers, because every chunk changes them; metrics are read from them. */
export class RelayTotals {
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  readonly refused = new Map<RefusalReason, number>();

  countRefusal(reason: RefusalReason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}
