// Two ends of a sealed carrier over a test duplex, proven or not, and two sessions on top.
import { type ByteDuplex, MemoryBudget, type MuxHandlers, MuxSession } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import { type EndKind, endPair, rethrow } from '@tunnel/testkit';
import { derivePsk } from './noise.ts';
import { SealedCarrier, type SealedEnd, type SealedOptions, type SealedOwner } from './sealed-carrier.ts';

export const PSK = derivePsk('a secret of tests', 'office-db');
export const PROLOGUE = Buffer.from('tunnel-p2p/1office-db');

export class RecordingOwner implements SealedOwner {
  proven: string | null = null;
  failed: SealedEnd | null = null;
  readonly messages: string[] = [];
  whenProven: (carrier: SealedCarrier) => void = () => {};

  onProven(carrier: SealedCarrier, hello: Buffer): void {
    this.proven = hello.toString();
    this.whenProven(carrier);
  }

  onMessage(_carrier: SealedCarrier, bytes: Buffer): void {
    this.messages.push(bytes.toString());
  }

  onFailed(_carrier: SealedCarrier, end: SealedEnd): void {
    this.failed = end;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }
}

export const sealedEnd = (
  duplex: ByteDuplex,
  role: SealedOptions['role'],
  owner: RecordingOwner,
  changes: Partial<SealedOptions> = {},
): SealedCarrier => {
  const hello = Buffer.from(`hello of the ${role}`);
  const options = { role, psk: PSK, prologue: PROLOGUE, hello, clock: systemClock, ...changes };
  const carrier = new SealedCarrier(duplex, options, owner);
  carrier.begin();
  return carrier;
};

export interface SealedSessions {
  readonly subscriber: MuxSession;
  readonly publisher: MuxSession;
  readonly carriers: readonly [SealedCarrier, SealedCarrier];
  readonly owners: readonly [RecordingOwner, RecordingOwner];
  close(): void;
}

export const sealedSessions = async (
  kind: EndKind,
  handlers: Partial<MuxHandlers>,
  wrap: (duplex: ByteDuplex) => ByteDuplex = (duplex) => duplex,
): Promise<SealedSessions> => {
  const ends = await endPair(kind);
  const budget = new MemoryBudget(1024 * 1024 * 1024);
  const quiet = { onCarrierLost: () => {}, report: rethrow };
  const common = { budget, clock: systemClock };
  const subscriber = new MuxSession({ role: 'client', ...common, handlers: quiet });
  const publisher = new MuxSession({ role: 'edge', ...common, handlers: { ...quiet, ...handlers } });
  const owners = [new RecordingOwner(), new RecordingOwner()] as const;
  owners[0].whenProven = (carrier) => subscriber.addCarrier(carrier);
  owners[1].whenProven = (carrier) => publisher.addCarrier(carrier);
  const responder = sealedEnd(ends.b, 'responder', owners[1]);
  const initiator = sealedEnd(wrap(ends.a), 'initiator', owners[0]);
  return {
    subscriber,
    publisher,
    carriers: [initiator, responder],
    owners,
    close: () => {
      const bye = { code: 'cancelled', text: 'test is over' } as const;
      subscriber.close(bye);
      publisher.close(bye);
      ends.close();
    },
  };
};
