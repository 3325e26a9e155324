// Tests of the PROXY protocol through a real edge: a local TCP service learns the address of a visitor before the first byte of the
// visitor.
import { connect, type Socket } from 'node:net';
import { eventually, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

const visit = async (harness: Harness, version: 'v1' | 'v2') => {
  let heard = Buffer.alloc(0);
  const service = harness.use(
    await startTcpServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (part: Buffer) => {
        heard = Buffer.concat([heard, part]);
      });
    }),
  );
  const program = await harness.tcp(stack, service.port, { flags: ['--proxy-protocol', version] });
  const { assigned_port: port } = await program.ready();
  const socket: Socket = connect(port, '127.0.0.1');
  harness.use({ close: async () => void socket.destroy() });
  socket.on('error', () => {});
  socket.write('hello');
  await eventually(() => expect(heard.toString('latin1')).toMatch(/hello$/));
  return { heard, port, from: socket.localPort };
};

describe.concurrent('a TCP tunnel with --proxy-protocol', () => {
  it('v1 passes address and port of the visitor, and the public port', async ({ harness }) => {
    const { heard, port, from } = await visit(harness, 'v1');
    expect(heard.toString('latin1')).toMatch(
      new RegExp(`^PROXY TCP[46] \\S*127\\.0\\.0\\.1 \\S+ ${from} ${port}\\r\\nhello$`),
    );
  });

  it('v2 passes the visitor port and the public port in binary form', async ({ harness }) => {
    const { heard, port, from } = await visit(harness, 'v2');
    const header = heard.subarray(0, heard.length - 5);
    expect(header.subarray(0, 13).toString('hex')).toBe('0d0a0d0a000d0a515549540a21');
    expect([0x11, 0x21]).toContain(header[13]);
    expect(header.readUInt16BE(14)).toBe(header.length - 16);
    expect([header.readUInt16BE(header.length - 4), header.readUInt16BE(header.length - 2)]).toEqual([from, port]);
  });
});
