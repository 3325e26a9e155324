// Summarizes rounds: median and range of each figure of each path, and of its ratio to the yardstick within a round.
import { spread } from '../lib/statistics.mjs';

/**
 * @param {{ figures: string[], rank: string, yardstick?: string }} row
 * @param {Record<string, Record<string, number>>[]} rounds
 * @returns {{ path: string, figures: Record<string, object | null>, ratio: object | null }[]} sorted, the best path first
 */
export function summarizeRow({ figures, rank, yardstick }, rounds) {
  const names = [...new Set(rounds.flatMap((round) => Object.keys(round)))];
  const value = (round, name, key) => round[name]?.[key] ?? Number.NaN;
  const paths = names.map((path) => ({
    path,
    figures: Object.fromEntries(figures.map((key) => [key, spread(rounds.map((round) => value(round, path, key)))])),
    ratio: spread(rounds.map((round) => value(round, path, rank) / value(round, yardstick, rank))),
  }));
  const place = (path) => path.figures[rank]?.median ?? Number.POSITIVE_INFINITY;
  return paths.sort((a, b) => place(a) - place(b));
}
