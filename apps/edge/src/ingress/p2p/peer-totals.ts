// What p2p tunnels have seen since the start: joins, relayed bytes, refusals, and how tries to go direct ended.
import type { DirectOutcome, StreamCode } from '@tunnel/protocol';

/** Why a relay stream was turned away. */
type RelayRefusal = 'tunnel-limit' | 'no-tunnel' | 'no-healthy' | 'no-carrier' | StreamCode;

/** Plain numbers, because they change with every chunk; metrics read them. */
export class PeerTotals {
  /** Subscribers that joined. */
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  readonly refused = new Map<RelayRefusal, number>();
  /** As publishers report them; those that go direct name them all from the first scrape on. */
  readonly attempts: Record<DirectOutcome, number> = {
    direct: 0,
    'udp-blocked': 0,
    'random-ports': 0,
    'no-answer': 0,
    'no-transport': 0,
  };

  countRefusal(reason: RelayRefusal): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}
