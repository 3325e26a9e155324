// Fails on an import that the tables in ARCHITECTURE.md forbid. npm's hoisting would let any sibling resolve.
// usage: node scripts/check-imports.mjs [ROOT]
import { resolve } from 'node:path';
import { checkImports } from './lib/check-imports.mjs';
import { ROOT } from './lib/paths.mjs';

const { text, code } = checkImports(resolve(process.argv[2] ?? ROOT));
process.stdout.write(text);
process.exitCode = code;
