// How many flows each address has on all udp tunnels together, and which of them may have to make room. Apart from connections: the source of a
// datagram can be forged, and must not shut its owner out of tcp.
import type { Flow } from './flow.ts';
import { addressKeyOf, type FlowKey } from './flow-key.ts';
import { FlowList } from './flow-list.ts';

/** The list is of those that are not confirmed. */
class AddressFlows<C> extends FlowList<Flow<C>> {
  count = 0;
}

export class FlowAddresses<C> {
  readonly #perAddress: number;
  readonly #of = new Map<FlowKey, AddressFlows<C>>();

  constructor(limits: { readonly perAddress: number }) {
    this.#perAddress = limits.perAddress;
  }

  /** Addresses that have a flow. */
  get size(): number {
    return this.#of.size;
  }

  isFull(address: string): boolean {
    return (this.#of.get(addressKeyOf(address))?.count ?? 0) >= this.#perAddress;
  }

  /** Who would have to make room; null: all that it has are confirmed. */
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
