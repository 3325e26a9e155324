// What udp tunnels have passed and dropped since the start.
import { type DropReason, dropReason } from '@tunnel/contract';

/** Datagrams that were not passed: each is counted under exactly one reason. */
export type DropCounts = Record<DropReason, number>;

export const noDrops = (): DropCounts =>
  Object.fromEntries(dropReason.options.map((reason) => [reason, 0])) as DropCounts;

/** Plain numbers, because they change with every datagram; metrics read them. */
export class UdpTotals {
  /** Flows whose client has opened a local socket. */
  requests = 0;
  /** Payloads. */
  bytesToClient = 0;
  bytesToVisitor = 0;
  datagramsIn = 0;
  datagramsOut = 0;
  readonly dropped = noDrops();
  /** Visitors are never told, and their datagrams are counted as dropped ones. */
  readonly refused: ReadonlyMap<string, number> = new Map();
}
