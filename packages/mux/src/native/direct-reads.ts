// Static reads of a carrier past Node's stream layer. A TLS record is 16 KB at most, and each is a call of its own: what Node does around it (timers, two
// closures, a look at the stream's state) is more than what we do with it. Only bytes take this way: ends and errors are told by the socket as ever.
import type { Socket } from 'node:net';
import { nodeHandles } from './node-handles.ts';
import type { StaticReader } from './node-internals.ts';

interface DirectHandle {
  onread: (this: DirectHandle, buffer?: ArrayBuffer) => Buffer | undefined;
  reading: boolean;
  readStop(): void;
  /** Ours: who reads, how Node would, and the memory that is being read into. */
  reader: StaticReader;
  ordinarily: DirectHandle['onread'];
  view: Buffer | null;
}

let state: Int32Array;
let readIndex = 0;

/** Of a socket that reads statically and has no timeout. Where Node's parts are not to be had nothing changes. */
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
  // Node keeps no reference of its own.
  this.view = next;
  return next;
}
