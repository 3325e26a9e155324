// Measures a small operation: warms it up, times it in samples, and reads its allocations from the heap.
import { median } from '../lib/statistics.mjs';

const SAMPLE_MS = 100;
const SAMPLES = 7;
const WARM_UP_MS = 300;
/** Maximum allocation of a sample, less than the young generation of micro.mjs. */
const ALLOCATE_AT_MOST_BYTES = 64 * 1024 * 1024;

/**
 * @param {(times: number) => void | Promise<void>} run repeats the operation `times` times
 * @returns {Promise<{ perSecond: number, bytesEach: number }>} medians
 */
export async function measureOperation(run) {
  const times = await calibrate(run);
  const rates = [];
  for (let sample = 0; sample < SAMPLES; sample++) rates.push((times / (await timed(run, times))) * 1000);
  return { perSecond: median(rates), bytesEach: await allocated(run, times) };
}

async function timed(run, times) {
  const begin = performance.now();
  await run(times);
  return performance.now() - begin;
}

/** Warms the operation up, and returns how often it fits into a sample. */
async function calibrate(run) {
  const begin = performance.now();
  let times = 16;
  let tookMs = 0;
  while (performance.now() - begin < WARM_UP_MS || tookMs < SAMPLE_MS / 4) {
    tookMs = await timed(run, times);
    if (tookMs < SAMPLE_MS / 2) times *= 2;
  }
  return Math.max(1, Math.round((times * SAMPLE_MS) / Math.max(tookMs, 1)));
}

async function allocated(run, timesOfSample) {
  const guess = await allocatedBy(run, 64);
  const times = Math.max(64, Math.min(timesOfSample, Math.floor(ALLOCATE_AT_MOST_BYTES / Math.max(guess, 1))));
  const samples = [];
  for (let sample = 0; sample < SAMPLES; sample++) samples.push(await allocatedBy(run, times));
  return median(samples);
}

/** Returns the bytes allocated per operation, on the heap and in array buffers. */
async function allocatedBy(run, times) {
  globalThis.gc();
  const before = heldBytes();
  await run(times);
  return Math.max(0, heldBytes() - before) / times;
}

function heldBytes() {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
