// Random events on sessions with flows. A sent datagram arrives once, whole and in order, unless its flow was reported as closed; other
// datagrams are reported as dropped when offered. At the end no flows are left.
import type { StreamReason } from '@tunnel/protocol';
import {
  carrierPair,
  deterministicBytes,
  eventually,
  rethrow,
  type SessionPair,
  seededRandom,
  sessionPair,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { Carrier } from '../carrier/carrier.ts';
import type { DatagramOutcome, DatagramReader, DatagramStream } from './datagram-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const BYE: StreamReason = { code: 'cancelled', text: 'random' };
const EVENTS = 3000;

/** One direction of a flow. The first four bytes of a datagram are its number; shorter datagrams are empty. */
class Direction implements DatagramReader {
  readonly sent: Buffer[] = [];
  readonly outcomes = new Map<DatagramOutcome, number>();
  offered = 0;
  arrived = 0;
  wrong: string | null = null;
  /** Whether the end of the flow was reported to the reader. */
  isOver = false;

  offer(stream: DatagramStream, bytes: Buffer): void {
    this.offered += 1;
    const outcome = stream.send(bytes, 0, bytes.length);
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    if (outcome === 'sent') this.sent.push(bytes);
  }

  onDatagram(bytes: Buffer, start: number, end: number): void {
    const expected = this.sent[this.arrived];
    this.arrived += 1;
    if (this.isOver) this.wrong ??= 'a datagram after the end';
    if (expected === undefined || expected.compare(bytes, start, end) !== 0)
      this.wrong ??= `number ${this.arrived} is another`;
  }

  onReset(): void {
    this.isOver = true;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }
}

interface Flow {
  readonly near: DatagramStream;
  readonly toClient: Direction;
  readonly toEdge: Direction;
  far: DatagramStream | null;
}

let pair: SessionPair;
afterEach(() => pair.close());

describe.each(['plain', 'tls'] as const)('flows over %s carriers', (kind) => {
  it.each([1, 2, 3])('deliver every datagram once, or report the drop (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const flows = new Map<number, Flow>();
    const all: Flow[] = [];
    const carriers: Carrier[] = [];
    pair = await sessionPair({
      kind,
      carriers: 0,
      capabilities: ['datagram'],
      client: {
        onDatagramStream: (stream) => {
          const flow = flows.get(stream.flow) as Flow;
          if (below(10) === 0) {
            stream.refuse(BYE);
            return;
          }
          stream.accept();
          flow.far = stream;
          stream.read(flow.toClient);
        },
      },
    });
    const addCarrier = async (): Promise<void> => {
      const [accepted, dialled] = await carrierPair(kind);
      carriers.push(accepted);
      pair.edge.addCarrier(accepted);
      pair.client.addCarrier(dialled);
    };
    const openFlow = (): void => {
      const near = pair.edge.openDatagrams(HEAD, {
        onOpened: () => {},
        onRefused: () => {},
        abandon: rethrow,
      });
      if (near === null) return;
      const flow: Flow = { near, toClient: new Direction(), toEdge: new Direction(), far: null };
      near.read(flow.toEdge);
      flows.set(near.flow, flow);
      all.push(flow);
    };
    let serial = 0;
    const bytesOf = (): Buffer => {
      serial += 1;
      const size = [0, 4, 64, 1200, 1472, 9000, 40_000, 65_507][below(8)] ?? 0;
      const bytes = deterministicBytes(size, serial % 251);
      if (size >= 4) bytes.writeUInt32BE(serial);
      return bytes;
    };
    const living = (): Flow | undefined => {
      const open = all.slice(-20).filter(({ near }) => near.state !== 'closed');
      return open[below(open.length)];
    };

    await addCarrier();
    await addCarrier();
    for (let event = 0; event < EVENTS; event++) {
      const flow = living();
      const choice = below(1000);
      if (flow === undefined || choice < 20) openFlow();
      else if (choice < 500) flow.toClient.offer(flow.near, bytesOf());
      else if (choice < 960) {
        if (flow.far !== null) flow.toEdge.offer(flow.far, bytesOf());
      } else if (choice < 970) flow.near.reset(BYE);
      else if (choice < 980) flow.far?.reset(BYE);
      else if (choice < 982) {
        carriers[below(carriers.length)]?.destroy('cut');
        await addCarrier();
      } else await new Promise(setImmediate);
    }
    // Waits for datagrams in flight, until open flows have received everything sent.
    await eventually(() => {
      const open = all.filter(({ near, far }) => near.state === 'open' && far?.state === 'open');
      for (const { toClient, toEdge } of open) {
        if (toClient.arrived !== toClient.sent.length || toEdge.arrived !== toEdge.sent.length)
          throw new Error('not yet');
      }
    });
    for (const { toClient, toEdge } of all) {
      for (const direction of [toClient, toEdge]) {
        expect(direction.wrong).toBeNull();
        expect(direction.arrived).toBeLessThanOrEqual(direction.sent.length);
        expect([...direction.outcomes.values()].reduce((sum, count) => sum + count, 0)).toBe(direction.offered);
      }
    }
    expect(all.length).toBeGreaterThan(20);
    expect(all.reduce((sum, { toClient, toEdge }) => sum + toClient.arrived + toEdge.arrived, 0)).toBeGreaterThan(
      EVENTS / 10,
    );
    for (const { near } of all) near.reset(BYE);
    await eventually(() => expect([pair.edge.liveStreams, pair.client.liveStreams]).toEqual([0, 0]));
    expect([pair.edge.flows?.size, pair.client.flows?.size]).toEqual([0, 0]);
    expect([pair.edge.state, pair.client.state]).toEqual(['live', 'live']);
  });
});
