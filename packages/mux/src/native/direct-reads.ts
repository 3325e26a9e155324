// Static reads of a carrier that bypass Node's stream layer. A TLS record has at most 16 KB and needs a call; Node's work per call (timers,
// two closures, a check of the stream state) costs more than our own. Only bytes are read this way: the socket reports ends and errors as
// usual.
import type { Socket } from 'node:net';
import { nodeHandles } from './node-handles.ts';
import type { StaticReader } from './node-internals.ts';

interface DirectHandle {
  onread: (this: DirectHandle, buffer?: ArrayBuffer) => Buffer | undefined;
  reading: boolean;
  readStop(): void;
  /** Our fields: the reader, Node's original callback, and the buffer being read into. */
  reader: StaticReader;
  ordinarily: DirectHandle['onread'];
  view: Buffer | null;
}

let state: Int32Array;
let readIndex = 0;

/** Enables direct reads on a socket with static reads and without timeout. Has no effect if Node's internals are not available. */
export const readDirectly = (socket: Socket, reader: StaticReader): void => {
  const node = nodeHandles();
  const handle = (socket as unknown as { _handle: DirectHandle | null })._handle;
  if (node === null || handle === null || typeof handle.onread !== 'function') return;
  state = node.streamBaseState;
  readIndex = node.kReadBytesOrError;
  handle.reader = reader;
  handle.ordinarily = handle.onread;
  handle.view = null;
  handle.onread = onRead;
};

function onRead(this: DirectHandle, buffer?: ArrayBuffer): Buffer | undefined {
  const n = state[readIndex] as number;
  if (n <= 0) return this.ordinarily(buffer);
  if (!this.reader.onRead(n)) {
    this.reading = false;
    this.readStop();
  }
  const next = this.reader.nextView();
  if (next === null) return undefined;
  // Keeps the read buffer alive, because Node.js holds no reference to it.
  this.view = next;
  return next;
}
