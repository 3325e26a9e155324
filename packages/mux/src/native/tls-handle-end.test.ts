// TLS on a bare handle with a peer that reads nothing: a cut connection closes its descriptor, whatever is still queued.
import { endPair, eventually, RecordingReader } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HandleDuplex } from './handle-duplex.ts';
import { nodeHandles } from './node-handles.ts';

const CUT = { code: 'cancelled', text: 'cut off' } as const;

describe('a TLS handle with an end behind unsent bytes', () => {
  let end: HandleDuplex;
  let closes: number;
  let close: () => void;

  beforeEach(async () => {
    const pair = await endPair('accepted-tls');
    close = pair.close;
    end = pair.a as HandleDuplex;
    closes = 0;
    end.heldBy({ onClosed: () => void (closes += 1), onBecame: () => {} });
    new RecordingReader(end);
    fill(end);
    end.end();
    // The closing TLS alert is queued behind the filled buffers.
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(closes).toBe(0);
  });
  afterEach(() => close());

  it.each(['reset', 'destroy'] as const)('is closed after %s', async (how) => {
    if (how === 'reset') end.reset(CUT);
    else end.destroy();
    await eventually(() => expect(closes).toBe(1));
  });

  it('is closed when destroyed after a reset', async () => {
    end.reset(CUT);
    end.destroy();
    await eventually(() => expect(closes).toBe(1));
  });
});

/** Fills the connection below TLS until libuv has to queue bytes. The peer does not read. */
const fill = ({ wire }: HandleDuplex): void => {
  const node = nodeHandles();
  if (node === null) throw new Error('there are no handles');
  const bytes = Buffer.alloc(1024 * 1024);
  while (wire.writeQueueSize === 0) {
    const request = new node.WriteWrap();
    request.oncomplete = () => {};
    request.bytes = bytes;
    expect(wire.writeBuffer(request, bytes)).toBe(0);
  }
};
