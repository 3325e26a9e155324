import { CAPABILITY, frameTable } from '@tunnel/protocol';
import { expect, it } from 'vitest';
import type { Carrier } from '../carrier/carrier.ts';
import { FrameSender } from './frame-sender.ts';

it('the shared frame buffer keeps no address of a visitor after the frame is sent', () => {
  const sent: string[] = [];
  let shared = new Uint8Array();
  const carrier = {
    send: (frame: Uint8Array, length = frame.length) => {
      shared = frame as Uint8Array<ArrayBuffer>;
      sent.push(Buffer.from(frame.subarray(0, length)).toString('latin1'));
    },
  } as unknown as Carrier;
  const sender = new FrameSender(carrier, frameTable([CAPABILITY.COMPACT_OPEN]));
  sender.open(2, { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' }, 1024);
  expect(sent[0]).toContain('203.0.113.7:4711');
  expect(shared.some((byte) => byte !== 0)).toBe(false);
});
