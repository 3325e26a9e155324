// Transfers in one direction on a single stream or on several at once. Every byte is compared.
import { openConnection } from '../connection.mjs';
import { PatternCheck, sendPattern } from '../pattern.mjs';
import { decodeVerdict, encodeRequest, SERVICE, VERDICT_BYTES } from '../request.mjs';

/** @param {{ direction: 'down' | 'up', streams: number, warmUpBytes: number, bytes: number }} parameters: bytes of all streams */
export async function bulk(address, { direction, streams, warmUpBytes, bytes }, ready) {
  await transferAll(address, direction, streams, warmUpBytes);
  await ready();
  const begin = performance.now();
  await transferAll(address, direction, streams, bytes);
  return { seconds: (performance.now() - begin) / 1000, bytes: Math.floor(bytes / streams) * streams };
}

function transferAll(address, direction, streams, bytes) {
  const transfer = direction === 'down' ? download : upload;
  const each = Math.floor(bytes / streams);
  return Promise.all(Array.from({ length: streams }, (_, index) => transfer(address, each, index * 7919)));
}

async function download(address, bytes, offset) {
  const check = new PatternCheck(offset);
  const request = encodeRequest(SERVICE.source, { offset, bytes });
  const { ended } = openConnection(address, request, (chunk, length) => check.take(chunk, length));
  await ended;
  if (!check.right) throw new Error('a download brought other bytes than were sent');
  if (check.bytes !== bytes) throw new Error(`a download brought ${check.bytes} of ${bytes} bytes`);
}

async function upload(address, bytes, offset) {
  const verdict = Buffer.alloc(VERDICT_BYTES);
  let have = 0;
  const request = encodeRequest(SERVICE.sink, { offset, bytes });
  const { socket, ended } = openConnection(address, request, (chunk, length) => {
    have += chunk.copy(verdict, have, 0, length);
  });
  socket.once('connect', () => sendPattern(socket, offset, bytes, () => {}));
  await ended;
  if (have !== VERDICT_BYTES) throw new Error(`an upload was answered by ${have} bytes`);
  const { right, bytes: arrived } = decodeVerdict(verdict);
  if (arrived !== bytes) throw new Error(`an upload brought ${arrived} of ${bytes} bytes`);
  if (!right) throw new Error('an upload brought other bytes than were sent');
}
