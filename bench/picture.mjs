// `node bench/picture.mjs`: docs/benchmarks.svg anew from docs/benchmarks.json. A run that writes the record draws it, too.
import { relative } from 'node:path';
import { writePicture } from './lib/write-results.mjs';

process.stdout.write(`${relative(process.cwd(), writePicture())}\n`);
