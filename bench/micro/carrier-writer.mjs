// Measures batching: the cost to collect the frames of an event loop turn and to send them. The socket below accepts everything at once.

import { HEAD_ROOM_BYTES } from '@tunnel/mux';
import { encodeCredit, FRAME, WIRE_LIMITS } from '@tunnel/protocol';
import { CarrierWriter } from '../../packages/mux/src/carrier/carrier-writer.ts';

const SMALL = 128;

/** Behaves like a plain socket with room in the kernel: nothing waits, and the callback comes later. */
class OpenSocket {
  writableLength = 0;
  bytes = 0;
  write(bytes, onWritten) {
    this.bytes += bytes.length;
    process.nextTick(onWritten);
    return true;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Returns an operation that makes `perTurn` sends and then waits for the event loop turn in which they leave. */
function sending(perTurn, sentEach, send) {
  return async (times) => {
    const socket = new OpenSocket();
    const writer = new CarrierWriter(socket, { onReady: () => {}, onStuck: () => {} });
    const turns = Math.ceil(times / perTurn);
    for (let count = 0; count < turns; count++) {
      for (let index = 0; index < perTurn; index++) send(writer, index);
      await turn();
    }
    if (socket.bytes !== turns * perTurn * sentEach) throw new Error(`${socket.bytes} bytes left the writer`);
  };
}

const small = Buffer.alloc(HEAD_ROOM_BYTES + SMALL);
const large = Buffer.alloc(HEAD_ROOM_BYTES + WIRE_LIMITS.FRAME_DATA_MAX_BYTES);
const credit = encodeCredit(FRAME.WINDOW, 2, 65_536);
const frameBytes = (length) => WIRE_LIMITS.FRAME_HEADER_BYTES + length;

const sendSmall = (writer, index) => writer.sendData(2 * index, small, HEAD_ROOM_BYTES, small.length, false);
const sendLarge = (writer, index) => writer.sendData(2 * index, large, HEAD_ROOM_BYTES, large.length, true);

export const carrierWriter = [
  { name: 'an empty turn of the loop, for comparison', run: sending(1, 0, () => {}) },
  { name: 'batching: DATA of 128 bytes, 50 a turn', run: sending(50, frameBytes(SMALL), sendSmall) },
  { name: 'batching: DATA of 128 bytes, 1 a turn', run: sending(1, frameBytes(SMALL), sendSmall) },
  { name: 'batching: WINDOW, 50 a turn', run: sending(50, credit.length, (writer) => writer.send(credit)) },
  {
    name: 'batching: DATA of 256 KiB in place, 4 a turn',
    run: sending(4, frameBytes(WIRE_LIMITS.FRAME_DATA_MAX_BYTES), sendLarge),
  },
];
