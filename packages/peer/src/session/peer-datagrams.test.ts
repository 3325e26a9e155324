import { rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { Harness, HEAD, type SideOptions, type SubscriberSide } from './peer-pair.fixture.ts';

let harness: Harness;
let subscriber: SubscriberSide;

/** Time for messages through the relay and a hole punch, but shorter than every retry pause. */
const SOON_MS = 1000;

const begin = async (one: SideOptions = {}, other: SideOptions = {}): Promise<void> => {
  subscriber = harness.subscriber(one);
  harness.join(subscriber, harness.publisher(other));
  await harness.clock.advance(SOON_MS);
};

beforeEach(() => {
  harness = new Harness();
});

describe('the flows of a udp service', () => {
  it('start on the relay and switch to the direct path once it is up', async () => {
    await begin({ service: 'udp', direct: false }, { service: 'udp' });
    const answers: string[] = [];
    const flow = subscriber.side.openDatagrams(HEAD, {
      onOpened: () => {},
      onRefused: (reason) => answers.push(reason.code),
      abandon: rethrow,
    });
    flow?.read({
      onDatagram: (bytes, start, end) => answers.push(bytes.toString('utf8', start, end)),
      onReset: () => answers.push('reset'),
      abandon: rethrow,
    });
    expect(flow?.send(Buffer.from('one'), 0, 3)).toBe('sent');
    await harness.clock.advance(200);
    expect(answers).toEqual(['one']);
    expect(subscriber.side.bytes.directBytes).toBe(0);
  });

  it('use sealed datagrams on the direct path, and no carrier for small datagrams', async () => {
    await begin({ service: 'udp' }, { service: 'udp' });
    expect(subscriber.path).toBe('direct');
    const answers: string[] = [];
    const flow = subscriber.side.openDatagrams(HEAD, {
      onOpened: () => {},
      onRefused: (reason) => answers.push(reason.code),
      abandon: rethrow,
    });
    flow?.read({
      onDatagram: (bytes, start, end) => answers.push(bytes.toString('utf8', start, end)),
      onReset: () => answers.push('reset'),
      abandon: rethrow,
    });
    flow?.send(Buffer.from('first'), 0, 5);
    await harness.clock.advance(200);
    expect(answers).toEqual(['first']);
    const before = subscriber.side.bytes.directBytes;
    flow?.send(Buffer.alloc(1000, 'x'), 0, 1000);
    await harness.clock.advance(50);
    expect(answers[1]).toBe('x'.repeat(1000));
    expect(subscriber.side.bytes.directBytes - before).toBeLessThan(2200);
    // A datagram on a failed path is lost and its flow is reset; a new flow would use the relay.
    harness.cut();
    flow?.send(Buffer.from('lost'), 0, 4);
    await harness.clock.advance(15_000);
    expect(answers).not.toContain('lost');
    expect(answers.at(-1)).toBe('reset');
  });
});
