// `node bench/picture.mjs`: regenerates docs/benchmarks-peers.md and .svg from docs/benchmarks-peers.json. A run that writes the record
// regenerates both as well.
import { relative } from 'node:path';
import { renderDocs } from './peers/record.mjs';

for (const file of renderDocs()) process.stdout.write(`${relative(process.cwd(), file)}\n`);
