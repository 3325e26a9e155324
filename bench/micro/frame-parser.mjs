// Measures the frame parser: many small frames in a single buffer, bulk frames in pieces of a read, and small frames cut at any position.
import { FRAME, FrameParser, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
const SMALL = 128;
const READ = 64 * 1024;

/** Returns `count` DATA frames of `length` bytes on streams 2, 4, 6, … */
function framesOf(count, length) {
  const bytes = Buffer.alloc(count * (HEADER + length));
  for (let index = 0; index < count; index++) {
    writeFrameHeader(bytes, index * (HEADER + length), FRAME.DATA, length, 2 + 2 * (index % 50));
  }
  return bytes;
}

let seenBytes = 0;
const makeParser = () =>
  new FrameParser({
    onData: (_id, _bytes, start, end) => {
      seenBytes += end - start;
    },
    onFrame: () => {},
  });

/** Returns an operation that pushes `bytes` in pieces repeatedly, until `frames` have been parsed. */
function pushing(bytes, framesInBytes, pieceBytes) {
  const parser = makeParser();
  return (frames) => {
    seenBytes = 0;
    for (let done = 0; done < frames; done += framesInBytes) {
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        if (!parser.push(bytes, at, Math.min(bytes.length, at + pieceBytes))) throw new Error(parser.failure);
      }
    }
    const expected = Math.ceil(frames / framesInBytes) * (bytes.length - framesInBytes * HEADER);
    if (seenBytes !== expected) throw new Error(`the parser handed on ${seenBytes} of ${expected} bytes`);
  };
}

const small = framesOf(100, SMALL);
const bulk = framesOf(4, WIRE_LIMITS.FRAME_DATA_MAX_BYTES);

export const frameParser = [
  { name: 'frame parser: frames of 128 bytes, 100 a read', run: pushing(small, 100, small.length) },
  { name: 'frame parser: frames of 128 bytes, cut every 50 bytes', run: pushing(small, 100, 50) },
  { name: 'frame parser: frames of 256 KiB in reads of 64 KiB', run: pushing(bulk, 4, READ) },
];
