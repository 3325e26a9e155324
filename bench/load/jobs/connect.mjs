// A connection per request: connect, a small request, its response, close.
import { percentile } from '../../lib/statistics.mjs';
import { openConnection } from '../connection.mjs';
import { patternPiece } from '../pattern.mjs';
import { encodeRequest, SERVICE, SMALL_BYTES } from '../request.mjs';

/** @param {{ concurrency: number, warmUpRequests: number, requests: number }} parameters */
export async function connect(address, { concurrency, warmUpRequests, requests }, ready) {
  await requestAll(address, concurrency, warmUpRequests);
  await ready();
  const begin = performance.now();
  const times = Float64Array.from(await requestAll(address, concurrency, requests)).sort();
  return {
    seconds: (performance.now() - begin) / 1000,
    requests: times.length,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}

async function requestAll(address, concurrency, requests) {
  const times = [];
  let begun = 0;
  const worker = async () => {
    while (begun < requests) {
      begun += 1;
      times.push(await requestOnce(address, begun));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return times;
}

async function requestOnce(address, index) {
  const begin = performance.now();
  const small = patternPiece(index * 31, SMALL_BYTES);
  const answer = Buffer.alloc(SMALL_BYTES);
  let have = 0;
  const { ended } = openConnection(address, Buffer.concat([encodeRequest(SERVICE.answer), small]), (chunk, length) => {
    if (have + length <= SMALL_BYTES) chunk.copy(answer, have, 0, length);
    have += length;
  });
  await ended;
  if (have !== SMALL_BYTES || !answer.equals(small)) throw new Error('an answer is not what was sent');
  return performance.now() - begin;
}
