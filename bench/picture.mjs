// `node bench/picture.mjs`: docs/benchmarks-peers.md and .svg anew from docs/benchmarks-peers.json. A run that writes the record draws them, too.
import { relative } from 'node:path';
import { renderDocs } from './peers/record.mjs';

for (const file of renderDocs()) process.stdout.write(`${relative(process.cwd(), file)}\n`);
