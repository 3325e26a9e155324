// Subdomains and who has them. Names that the edge chooses are readable and cannot be guessed.
import { generateName, NameLeases, type WantedName } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';

/** Two names of the generator are never the same by chance; a few tries are more than enough. */
const TRIES = 5;

export class NamePool {
  readonly #leases = new NameLeases();
  readonly #clock: Clock;
  readonly #random: () => number;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Throws a fault when the name is another's. */
  open(owner: string, wanted: WantedName): string {
    if (wanted.kind !== 'any' && this.#lease(wanted.name, owner)) return wanted.name;
    if (wanted.kind === 'exact') throw new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: wanted.name });
    for (let i = 0; i < TRIES; i += 1) {
      const name = generateName(this.#random);
      if (this.#lease(name, owner)) return name;
    }
    throw new Fault('INTERNAL', {}, { internal: 'no free name was found' });
  }

  /** Its client is away, and has a while to come back. */
  isHeld(name: string): boolean {
    return this.#leases.useOf(name, this.#clock.monotonic()) === 'held';
  }

  hold(name: string, owner: string, until: number): void {
    this.#leases.hold(name, owner, until, this.#clock.monotonic());
  }

  release(name: string, owner: string): void {
    this.#leases.release(name, owner);
  }

  #lease(name: string, owner: string): boolean {
    return this.#leases.lease(name, owner, this.#clock.monotonic());
  }
}
