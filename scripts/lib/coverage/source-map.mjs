// Reads a source map: maps offsets of a source to offsets of the generated script.
import { lineStarts } from './branches.mjs';

const DIGITS = new Map(
  [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].map((sign, at) => [sign, at]),
);

/**
 * Returns pairs of offsets, in source order, for each source known to `readSource`. `begin` is the offset in the script where the mapped
 * code begins.
 * @returns {Map<string, { from: number[], to: number[] }>}
 */
export function offsetsOf(map, script, begin, readSource) {
  const scriptLines = [begin, ...lineStarts(script).slice(1)];
  const sources = map.sources.map((name) => {
    const text = readSource(name);
    return text === undefined ? undefined : { name, lines: lineStarts(text), pairs: [] };
  });
  for (const [line, column, source, sourceLine, sourceColumn] of segmentsOf(map.mappings)) {
    const { lines, pairs } = sources[source] ?? {};
    if (pairs) pairs.push([lines[sourceLine] + sourceColumn, scriptLines[line] + column]);
  }
  return new Map(sources.filter(Boolean).map(({ name, pairs }) => [name, inOrder(pairs)]));
}

function inOrder(pairs) {
  pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return { from: pairs.map(([from]) => from), to: pairs.map(([, to]) => to) };
}

/** Yields each segment as [line, column, source, source line, source column]. Segments without a source are skipped. */
function* segmentsOf(mappings) {
  const now = [0, 0, 0, 0];
  let line = 0;
  for (const group of mappings.split(';')) {
    now[0] = 0;
    for (const segment of group.split(',')) {
      const steps = numbersOf(segment);
      steps.slice(0, 4).forEach((step, at) => {
        now[at] += step;
      });
      if (steps.length >= 4) yield [line, ...now];
    }
    line++;
  }
}

function numbersOf(segment) {
  const numbers = [];
  let value = 0;
  let shift = 0;
  for (const sign of segment) {
    const digit = DIGITS.get(sign);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}
