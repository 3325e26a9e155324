import { type ByteDuplex, type ByteReader, HEAD_ROOM_BYTES } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { PreconnectBuffer } from './preconnect-buffer.ts';

/** Stands in for a socket: records the calls it gets, and delivers text like a socket. */
class FakeSocket implements ByteDuplex {
  readonly told: string[] = [];
  reader: ByteReader | undefined;
  read(reader: ByteReader): void {
    this.reader = reader;
  }
  say(text: string): boolean | undefined {
    return this.reader?.onData(Buffer.from(text), 0, Buffer.byteLength(text), false);
  }
  write(bytes: Buffer, start: number, end: number): boolean {
    this.told.push(bytes.toString('utf8', start, end));
    return true;
  }
  resume(): void {
    this.told.push('resume');
  }
  end(): void {
    this.told.push('end');
  }
  reset(reason: StreamReason): void {
    this.told.push(`reset ${reason.code}`);
  }
}

class FakeReader implements ByteReader {
  readonly heard: string[] = [];
  takes = true;
  onData(bytes: Buffer, start: number, end: number): boolean {
    expect(start).toBeGreaterThanOrEqual(this.heard.length === 0 ? HEAD_ROOM_BYTES : 0);
    this.heard.push(bytes.toString('utf8', start, end));
    return this.takes;
  }
  onDrain(): void {
    this.heard.push('drain');
  }
  onEnd(): void {
    this.heard.push('end');
  }
  onReset(reason: StreamReason): void {
    this.heard.push(`reset ${reason.code}`);
  }
  abandon(error: unknown): void {
    rethrow(error);
  }
}

const start = () => {
  const socket = new FakeSocket();
  const left: string[] = [];
  const end = new PreconnectBuffer(socket, { onLeft: () => left.push('left'), abandon: rethrow });
  end.hold();
  return { socket, end, left, reader: new FakeReader() };
};

it('a preconnect buffer gives a reader the earlier bytes first, in order, and then the half-close', () => {
  const { socket, end, reader } = start();
  socket.say('one ');
  socket.say('two');
  socket.reader?.onEnd();
  end.read(reader);
  expect(reader.heard).toEqual(['one two', 'end']);
});

it('a preconnect buffer pauses the socket at its limit and resumes it for the reader', () => {
  const { socket, end, reader } = start();
  expect(socket.say('x'.repeat(EDGE_LIMITS.PRECONNECT_BUFFER_BYTES - 1))).toBe(true);
  expect(socket.say('yy')).toBe(false);
  end.read(reader);
  expect(socket.told).toEqual(['resume']);
  expect(socket.say('z')).toBe(true);
  expect(reader.heard.map((text) => text.length)).toEqual([EDGE_LIMITS.PRECONNECT_BUFFER_BYTES + 1, 1]);
});

it('a preconnect buffer gives a full reader no data and no end until the reader resumes', () => {
  const { socket, end, reader } = start();
  socket.say('held');
  reader.takes = false;
  end.read(reader);
  expect(socket.say('later')).toBe(false);
  socket.reader?.onEnd();
  expect(reader.heard).toEqual(['held']);
  reader.takes = true;
  end.resume();
  expect(reader.heard).toEqual(['held', 'later', 'end']);
});

it('a preconnect buffer reports a reset to its owner before there is a reader, and to the reader afterwards', () => {
  const early = start();
  early.socket.reader?.onReset({ code: 'peer-reset', text: '' });
  expect(early.left).toEqual(['left']);
  const late = start();
  late.end.read(late.reader);
  late.socket.reader?.onReset({ code: 'peer-reset', text: '' });
  expect([late.left, late.reader.heard]).toEqual([[], ['reset peer-reset']]);
});
