import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBatch } from './datagram-batch.ts';
import {
  FLOW_ID_BYTES,
  OpeningKey,
  REPLAY_WINDOW_PACKETS,
  readKind,
  SEALED_HEADER_BYTES,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  type SealedKind,
  SealingKey,
} from './sealed-datagram.ts';
import { decodePing, decodePong, encodePing, encodePong } from './sealed-ping.ts';

interface Vector {
  readonly name: string;
  readonly path_id: string;
  readonly key: string;
  readonly kind: keyof typeof SEALED_KIND;
  readonly counter: number;
  readonly body: string;
  readonly packet: string;
  readonly flow?: number;
  readonly payload?: string;
  readonly token?: string;
  readonly address?: string;
  readonly port?: number;
}

interface BatchVector extends Vector {
  readonly datagrams: { flow: number; payload: string }[] | null;
}

const read = <T>(file: string): T[] =>
  JSON.parse(readFileSync(new URL(`../../../protocol/vectors/${file}`, import.meta.url), 'utf8')) as T[];
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

const PATH_ID = hex('0123456789abcdef');
const KEY = Buffer.from(Array.from({ length: 32 }, (_, i) => i));

const sealed = (key: SealingKey, kind: SealedKind, body: Buffer): Buffer => {
  const into = Buffer.alloc(SEALED_OVERHEAD_BYTES + body.length);
  expect(key.seal(kind, body, into, 0)).toBe(into.length);
  return into;
};

/** Creates the two keys of a path, and packets 1 to `count` sealed with them. */
const packetsOf = (count: number): { opening: OpeningKey; packets: Buffer[] } => {
  const sealing = new SealingKey(PATH_ID, KEY);
  const packets = Array.from({ length: count }, (_, i) =>
    sealed(sealing, SEALED_KIND.DATAGRAM, Buffer.from([0, 0, 0, i & 255])),
  );
  return { opening: new OpeningKey(PATH_ID, KEY), packets };
};

describe('sealed golden vectors', () => {
  it.each(read<Vector>('sealed.json'))('$name', (vector) => {
    const opening = new OpeningKey(hex(vector.path_id), hex(vector.key));
    const packet = hex(vector.packet);
    const body = opening.open(packet) as Buffer;
    expect(body.toString('hex')).toBe(vector.body);
    expect(readKind(packet)).toBe(SEALED_KIND[vector.kind]);
    expect(opening.highest).toBe(vector.counter);
    if (vector.kind === 'DATAGRAM') {
      expect(body.readUInt32BE(0)).toBe(vector.flow);
      expect(body.toString('hex', FLOW_ID_BYTES)).toBe(vector.payload);
    }
    if (vector.kind === 'PING') {
      expect(decodePing(body)).toEqual(hex(vector.token as string));
      expect(encodePing(hex(vector.token as string))).toEqual(body);
    }
    if (vector.kind === 'PONG') {
      const { token = '', address = '', port = 0 } = vector;
      expect(decodePong(body)).toEqual({ token: hex(token), address, port });
      expect(encodePong(hex(token), address, port)).toEqual(body);
    }
  });

  it.each(read<BatchVector>('sealed-capabilities.json'))('DATAGRAMS: $name', ({ packet, body, counter, datagrams }) => {
    const opening = new OpeningKey(PATH_ID, KEY, true);
    const opened = opening.open(hex(packet)) as Buffer;
    expect([opened.toString('hex'), opening.highest]).toEqual([body, counter]);
    const found: { flow: number; payload: string }[] = [];
    const isWhole = readBatch(opened, (flow, bytes, start, end) =>
      found.push({ flow, payload: bytes.toString('hex', start, end) }),
    );
    expect(isWhole ? found : null).toEqual(datagrams);
    expect(new OpeningKey(PATH_ID, KEY).open(hex(packet))).toBe('malformed');
  });

  it.each(['sealed.json', 'sealed-capabilities.json'])(
    'sealing yields the same bytes for the same counters: %s',
    (file) => {
      const inOrder = read<Vector>(file).filter(({ counter }) => counter < 2 ** 32);
      const key = new SealingKey(PATH_ID, KEY);
      const packets = inOrder.map(({ kind, body }) => sealed(key, SEALED_KIND[kind], hex(body)).toString('hex'));
      expect(packets).toEqual(inOrder.map(({ packet }) => packet));
    },
  );

  it.each(read<Vector & { refused: string }>('sealed-invalid.json'))(
    'refused: $name',
    ({ path_id, key, packet, refused }) => {
      const opening = new OpeningKey(hex(path_id), hex(key));
      expect(opening.open(hex(packet))).toBe(refused);
      expect(opening.highest).toBe(0);
    },
  );
});

describe('sealing a packet', () => {
  it('never repeats a counter under the same key', () => {
    const key = new SealingKey(PATH_ID, KEY);
    const seen = new Set<string>();
    for (let i = 0; i < 500; i += 1) {
      const packet = sealed(key, i % 2 === 0 ? SEALED_KIND.DATAGRAM : SEALED_KIND.PING, Buffer.alloc(8));
      seen.add(packet.toString('hex', 9, SEALED_HEADER_BYTES));
    }
    expect(seen.size).toBe(500);
    expect(key.sealed).toBe(500);
  });

  it('writes only to the given part of the target buffer', () => {
    const into = Buffer.alloc(100, 0xee);
    const end = new SealingKey(PATH_ID, KEY).seal(SEALED_KIND.PROBE, Buffer.from('abc'), into, 10);
    expect(end).toBe(10 + SEALED_OVERHEAD_BYTES + 3);
    expect(into.subarray(0, 10)).toEqual(Buffer.alloc(10, 0xee));
    expect(into.subarray(end)).toEqual(Buffer.alloc(100 - end, 0xee));
    expect(new OpeningKey(PATH_ID, KEY).open(into.subarray(10, end))).toEqual(Buffer.from('abc'));
  });
});

describe('replay protection', () => {
  it('opens each packet once, in any order of arrival', () => {
    const { opening, packets } = packetsOf(300);
    const order = packets.map((_, i) => (i * 7) % 300);
    for (const i of order) expect(opening.open(packets[i] as Buffer)).toEqual(Buffer.from([0, 0, 0, i & 255]));
    for (const packet of packets) expect(opening.open(packet)).toBe('replayed');
  });

  it('treats a packet older than the window as a replay', () => {
    const window = REPLAY_WINDOW_PACKETS;
    const { opening, packets } = packetsOf(window + 2);
    expect(opening.open(packets[window] as Buffer)).toBeInstanceOf(Buffer);
    expect(opening.open(packets[0] as Buffer)).toBe('replayed');
    expect(opening.open(packets[1] as Buffer)).toBeInstanceOf(Buffer);
    expect(opening.open(packets[window + 1] as Buffer)).toBeInstanceOf(Buffer);
    expect(opening.open(packets[2] as Buffer)).toBeInstanceOf(Buffer);
  });

  it('lets the genuine packet pass after a forged packet with the same counter', () => {
    const { opening, packets } = packetsOf(3);
    const forged = Buffer.from(packets[2] as Buffer);
    forged[forged.length - 1] = (forged.at(-1) as number) ^ 1;
    expect(opening.open(forged)).toBe('forged');
    expect(opening.open(packets[0] as Buffer)).toBeInstanceOf(Buffer);
    expect(opening.open(packets[2] as Buffer)).toBeInstanceOf(Buffer);
  });

  it('decides like a plain list of counters for any order and gaps', () => {
    const window = REPLAY_WINDOW_PACKETS;
    const sealing = new SealingKey(PATH_ID, KEY);
    const packets = Array.from({ length: 4 * window }, () => sealed(sealing, SEALED_KIND.PING, Buffer.alloc(0)));
    const steps = fc.array(fc.integer({ min: -window - 40, max: window + 40 }), { maxLength: 120 });
    fc.assert(
      fc.property(steps, (jumps) => {
        const opening = new OpeningKey(PATH_ID, KEY);
        const taken = new Set<number>();
        let counter = 1;
        let highest = 0;
        for (const jump of jumps) {
          counter = Math.min(Math.max(1, counter + jump), packets.length);
          const isFresh = counter > highest - window && !taken.has(counter);
          expect(typeof opening.open(packets[counter - 1] as Buffer) !== 'string').toBe(isFresh);
          if (isFresh) taken.add(counter);
          if (isFresh) highest = Math.max(highest, counter);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('sealed packets under attack', () => {
  it('random bytes never open and never throw', () => {
    const opening = new OpeningKey(PATH_ID, KEY);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1500 }), (bytes) => typeof opening.open(Buffer.from(bytes)) === 'string'),
    );
    expect(opening.highest).toBe(0);
  });

  it('a truncated, extended or altered packet does not open, and the genuine one still does', () => {
    const { packets } = packetsOf(1);
    const packet = packets[0] as Buffer;
    const change = fc.oneof(
      fc.nat(packet.length - 1).map((end) => packet.subarray(0, end)),
      fc.uint8Array({ minLength: 1, maxLength: 40 }).map((more) => Buffer.concat([packet, more])),
      fc.tuple(fc.nat(packet.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, bits]) => {
        const changed = Buffer.from(packet);
        changed[at] = (changed[at] as number) ^ bits;
        return changed;
      }),
    );
    fc.assert(
      fc.property(change, (changed) => {
        const opening = new OpeningKey(PATH_ID, KEY);
        expect(typeof opening.open(changed)).toBe('string');
        expect(opening.open(packet)).toBeInstanceOf(Buffer);
      }),
      { numRuns: 300 },
    );
  });

  it('random PING and PONG bodies never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        decodePing(Buffer.from(bytes));
        decodePong(Buffer.from(bytes));
      }),
    );
  });
});

it('an address in a PONG reads as Node.js formats it', () => {
  const token = randomBytes(8);
  const told = (address: string): string | undefined => {
    const body = encodePong(token, address, 1);
    return body === null ? undefined : decodePong(body)?.address;
  };
  for (const address of ['127.0.0.1', '::1', '::', '2001:db8::1', 'fe80::1:2', '1:2:3:4:5:6:7:8', '1:0:0:2::3']) {
    expect(told(address)).toBe(address);
  }
  expect(told('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(told('fe80::1%eth0')).toBe('fe80::1');
  expect(told('localhost')).toBeUndefined();
});
