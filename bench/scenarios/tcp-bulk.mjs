// Bulk transfers in one direction, on a single stream or on eight.
import { BULK_FIGURES, measureBulk } from './measures.mjs';

const BYTES = 1.5e9;
const QUICK_BYTES = 3e8;
const WARM_UP_SHARE = 0.2;

const tcpBulk = (direction, streams) => ({
  name: `tcp-bulk-${direction}-${streams}`,
  title: `TCP, bulk ${direction === 'down' ? 'download' : 'upload'}, ${streams === 1 ? 'one stream' : `${streams} streams`}`,
  figures: BULK_FIGURES,
  targets: [
    { path: 'ours', figure: 'cpuPerGb', ratioAtMost: 1.8, ratioAtMostFromNode24: 1.5 },
    { path: 'ours-tls', figure: 'cpuPerGb', ratioAtMost: 2.5, ratioAtMostFromNode24: 1.7 },
  ],
  measure(stage) {
    const wanted = stage.quick ? QUICK_BYTES : BYTES;
    const parameters = { direction, streams, bytes: wanted, warmUpBytes: wanted * WARM_UP_SHARE };
    return measureBulk(stage, parameters);
  },
});

export const tcpBulkScenarios = [tcpBulk('down', 1), tcpBulk('down', 8), tcpBulk('up', 1), tcpBulk('up', 8)];
