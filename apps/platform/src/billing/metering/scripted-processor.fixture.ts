// A processor that takes usage as the real one does, counts an identifier once for 24 hours, and fails when a test wants it to.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { Processor, UsageEvent, UsageRange } from '../processor/processor.ts';

type Mood =
  | 'takes'
  | 'is away'
  | 'refuses'
  /** Takes it, and the answer is lost. */
  | 'answers to nobody'
  /** Takes it, and whoever asked is never told: it has died. */
  | 'hangs after taking'
  | 'hangs before taking';

const IDENTIFIERS_KNOWN_MS = 24 * 60 * 60_000;

export class ScriptedProcessor implements Pick<Processor, 'reportUsage' | 'meteredBytes'> {
  mood: Mood = 'takes';
  readonly calls: UsageEvent[] = [];
  readonly looks: UsageRange[] = [];
  readonly #clock: Clock;
  readonly #taken: UsageEvent[] = [];
  readonly #knownSince = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async reportUsage(event: UsageEvent): Promise<void> {
    this.calls.push(event);
    if (this.mood === 'is away') throw new Fault('BILLING_PROCESSOR_AWAY');
    if (this.mood === 'refuses') throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no such customer' });
    if (this.mood === 'hangs before taking') return new Promise(() => {});
    this.#take(event);
    if (this.mood === 'answers to nobody') throw new Fault('BILLING_PROCESSOR_AWAY');
    if (this.mood === 'hangs after taking') return new Promise(() => {});
    return undefined;
  }

  async meteredBytes(range: UsageRange): Promise<number> {
    this.looks.push(range);
    if (this.mood === 'is away') throw new Fault('BILLING_PROCESSOR_AWAY');
    return this.#sum(({ customerId, at }) => customerId === range.customerId && at >= range.from && at < range.to);
  }

  totalOf(customer: string): number {
    return this.#sum(({ customerId }) => customerId === customer);
  }

  #take(event: UsageEvent): void {
    const now = this.#clock.now();
    const since = this.#knownSince.get(event.identifier);
    if (since !== undefined && now - since < IDENTIFIERS_KNOWN_MS) return;
    this.#knownSince.set(event.identifier, now);
    this.#taken.push(event);
  }

  #sum(which: (event: UsageEvent) => boolean): number {
    let bytes = 0;
    for (const event of this.#taken) if (which(event)) bytes += event.bytes;
    return bytes;
  }
}
