// Two peers under random events in any order: networks cut in one or both directions, lost edges and replaced publishers. The invariants
// must hold after every run.

import { deterministicBytes, hashOf, randomCases, seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { MUX_LIMITS } from '../../../mux/src/limits.ts';
import { Harness, type OpenedStream, type PublisherSide, type SubscriberSide } from './peer-pair.fixture.ts';

const RUNS = randomCases(20);
const STEPS = 30;
const BYTES = deterministicBytes(200_000, 5);

class Run {
  readonly #random: () => number;
  readonly #harness = new Harness();
  readonly #subscriber: SubscriberSide;
  readonly #streams: { readonly opened: OpenedStream; written: number }[] = [];
  #publisher: PublisherSide;
  #relay: { cut(): void } | null = null;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#subscriber = this.#harness.subscriber();
    this.#publisher = this.#harness.publisher();
    this.#join();
  }

  readonly #events: readonly (() => void)[] = [
    () => this.#harness.cut(),
    () => this.#harness.network.restore(),
    () => this.#harness.network.restore(),
    () => this.#harness.blockFrom('subscriber'),
    () => this.#harness.blockFrom('publisher'),
    () => {
      this.#harness.network.lossShare = this.#random() < 0.5 ? 0 : 0.1;
    },
    () => this.#loseRelay(),
    () => this.#join(),
    () => this.#join(),
    () => this.#replacePublisher(),
    () => void this.#streams.push({ opened: this.#subscriber.open(), written: 0 }),
    () => void this.#streams.push({ opened: this.#subscriber.open(), written: 0 }),
    () => this.#write(),
    () => this.#write(),
    () => this.#write(),
  ];

  async play(): Promise<void> {
    for (let step = 0; step < STEPS; step += 1) {
      (this.#events[Math.floor(this.#random() * this.#events.length)] as () => void)();
      await this.#harness.clock.advance(Math.floor(this.#random() ** 3 * 20_000));
      this.#checkStreams();
    }
  }

  /** Restores the network and the edge, and checks that both peers are direct again and streams work. */
  async recover(): Promise<void> {
    this.#harness.network.restore();
    this.#harness.network.lossShare = 0;
    if (!this.#subscriber.side.isConnected || this.#relay === null) this.#join();
    await this.#harness.clock.advance(2 * MUX_LIMITS.PATH_RETRY_LATER_MS);
    expect([this.#subscriber.path, this.#publisher.path]).toEqual(['direct', 'direct']);
    const last = { opened: this.#subscriber.open(), written: 0 };
    await this.#harness.clock.advance(1000);
    last.opened.write('well');
    await this.#harness.clock.advance(1000);
    expect(last.opened.reader?.bytes).toBe(4);
    // Open streams have received an echo of all written bytes.
    for (const { opened, written } of this.#streams) {
      if (opened.stream?.state === 'open') expect(opened.reader?.bytes).toBe(written);
    }
    this.#checkStreams();
  }

  async end(): Promise<void> {
    this.#subscriber.side.close({ code: 'cancelled', text: 'stopped' });
    await this.#harness.clock.advance(1000);
    this.#publisher.side.close({ code: 'cancelled', text: 'stopped' });
    await this.#harness.clock.advance(10_000);
    expect([this.#publisher.side.peers, this.#harness.clock.pendingTimers]).toEqual([[], 0]);
    for (const { opened } of this.#streams) expect(opened.stream?.state ?? 'closed').toBe('closed');
  }

  /** Checks that no stream returns more bytes than written, and that no stream ends unasked. */
  #checkStreams(): void {
    for (const { opened, written } of this.#streams) {
      if (opened.reader === null) continue;
      expect(opened.reader.bytes).toBeLessThanOrEqual(written);
      expect(opened.reader.ended).toBe(false);
    }
  }

  /** Checks the bytes of every stream. Called once, because a digest can be taken only once. */
  checkBytes(): void {
    for (const { opened } of this.#streams) {
      if (opened.reader !== null) expect(opened.reader.digest()).toBe(hashOf(BYTES.subarray(0, opened.reader.bytes)));
    }
  }

  #write(): void {
    const stream = this.#streams[Math.floor(this.#random() * this.#streams.length)];
    if (stream?.opened.stream?.state !== 'open') return;
    const end = Math.min(BYTES.length, stream.written + Math.floor(this.#random() * 50_000));
    stream.opened.stream.write(Buffer.from(BYTES), stream.written, end, false);
    stream.written = end;
  }

  #join(): void {
    this.#loseRelay();
    this.#relay = this.#harness.join(this.#subscriber, this.#publisher);
  }

  #loseRelay(): void {
    this.#relay?.cut();
    this.#relay = null;
  }

  #replacePublisher(): void {
    // The relay is cut first, so that the old publisher cannot announce its end, as after a kill.
    this.#loseRelay();
    this.#publisher.side.close({ code: 'cancelled', text: 'killed' });
    this.#publisher = this.#harness.publisher();
    this.#join();
  }
}

it.each(Array.from({ length: RUNS }, (_, seed) => [seed]))(
  'run %i: streams arrive whole or are reset, and the peers reconnect',
  async (seed) => {
    const run = new Run(seed);
    await run.play();
    await run.recover();
    await run.end();
    run.checkBytes();
  },
);
