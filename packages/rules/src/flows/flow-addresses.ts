// UDP flows per visitor address over all tunnels, and the flows that can be evicted. Separate from connection limits: the source of a
// datagram can be forged, and must not lock its real owner out of TCP.
import type { Flow } from './flow.ts';
import { addressKeyOf, type FlowKey } from './flow-key.ts';
import { FlowList } from './flow-list.ts';

/** List of the unconfirmed UDP flows of a visitor's address, with the count of all its flows. */
class AddressFlows<C> extends FlowList<Flow<C>> {
  count = 0;
}

export class FlowAddresses<C> {
  readonly #perAddress: number;
  readonly #of = new Map<FlowKey, AddressFlows<C>>();

  constructor(limits: { readonly perAddress: number }) {
    this.#perAddress = limits.perAddress;
  }

  /** Number of visitors' addresses that have a UDP flow. */
  get size(): number {
    return this.#of.size;
  }

  isFull(address: string): boolean {
    return (this.#of.get(addressKeyOf(address))?.count ?? 0) >= this.#perAddress;
  }

  /** The flow to evict, or null if all flows of the address are confirmed. */
  oldestUnconfirmed(address: string): Flow<C> | null {
    return this.#of.get(addressKeyOf(address))?.first ?? null;
  }

  opened(flow: Flow<C>): void {
    const key = addressKeyOf(flow.address);
    let flows = this.#of.get(key);
    if (flows === undefined) {
      flows = new AddressFlows();
      this.#of.set(key, flows);
    }
    flows.count += 1;
    flows.append(flow.ofAddress);
  }

  ended(flow: Flow<C>): void {
    flow.ofAddress.leave();
    const key = addressKeyOf(flow.address);
    const flows = this.#of.get(key);
    if (flows === undefined) return;
    flows.count -= 1;
    if (flows.count === 0) this.#of.delete(key);
  }
}
