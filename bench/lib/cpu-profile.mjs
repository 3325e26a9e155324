// Reads a .cpuprofile: the functions in which a process spent time within a time window, by name and place in our sources.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { median } from './statistics.mjs';

const IDLE = '(idle)';

/**
 * Returns the time spent in each function. Every sample counts the same, because the time since the previous sample includes waits on a
 * busy machine, sometimes 100 ms.
 * @param {{ beginUs: number, endUs: number }} window on the monotonic clock, which profiles use as well
 * @returns {{ busyMs: number, windowMs: number, functions: { name: string, place: string, selfMs: number }[] }}
 */
export function selfTimes(file, window) {
  const { nodes, samples, timeDeltas, startTime } = JSON.parse(readFileSync(file, 'utf8'));
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const placeOf = sourcePlaces();
  const sampleMs = median(timeDeltas) / 1000;
  const totals = new Map();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index];
    if (at < window.beginUs || at > window.endUs) continue;
    const frame = byId.get(id);
    if (frame.functionName === IDLE) continue;
    const key = `${frame.functionName} ${frame.scriptId} ${frame.lineNumber} ${frame.columnNumber}`;
    if (!totals.has(key)) totals.set(key, { frame, count: 0 });
    totals.get(key).count += 1;
  }
  const functions = [...totals.values()]
    .map(({ frame, count }) => ({
      name: frame.functionName || '(anonymous)',
      place: placeOf(frame),
      selfMs: count * sampleMs,
    }))
    .sort((a, b) => b.selfMs - a.selfMs);
  const busyMs = functions.reduce((sum, { selfMs }) => sum + selfMs, 0);
  return { busyMs, windowMs: (window.endUs - window.beginUs) / 1000, functions };
}

/** Returns a function that finds the source place of a function with the source map beside its bundle. */
function sourcePlaces() {
  const maps = new Map();
  const mapOf = (path) => {
    if (!maps.has(path)) {
      const file = `${path}.map`;
      maps.set(path, existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : null);
    }
    return maps.get(path);
  };
  return ({ url, lineNumber, columnNumber }) => {
    if (!url.startsWith('file:')) return url === '' ? '' : `${url}:${lineNumber + 1}`;
    const path = fileURLToPath(url);
    const entry = mapOf(path)?.findEntry(lineNumber, columnNumber);
    if (!entry?.originalSource) return `${relative(ROOT, path)}:${lineNumber + 1}`;
    return `${relative(ROOT, resolve(path, '..', entry.originalSource))}:${entry.originalLine + 1}`;
  };
}
