// The names of the tunnels in a config.yml, whatever else is right or wrong in it: for completion, which has to be quick and says nothing.
// Apart from the schema: loading that takes longer than all of this.
import { readFileSync, statSync } from 'node:fs';
import { isMap, isScalar, parseDocument } from 'yaml';

const FILE_MAX_BYTES = 1024 * 1024;

export const tunnelNames = (file: string): string[] => {
  try {
    const found = statSync(file);
    if (!found.isFile() || found.size > FILE_MAX_BYTES) return [];
    const tunnels = parseDocument(readFileSync(file, 'utf8'), { logLevel: 'silent' }).get('tunnels');
    if (!isMap(tunnels)) return [];
    return tunnels.items.flatMap(({ key }) => (isScalar(key) ? [String(key.value)] : []));
  } catch {
    return [];
  }
};
