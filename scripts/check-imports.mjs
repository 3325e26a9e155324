// Fails on an import that the tables in ARCHITECTURE.md forbid (npm's hoisting would let any sibling resolve), and on state in modules.
// usage: node scripts/check-imports.mjs [ROOT]
import { resolve } from 'node:path';
import { checkImports } from './lib/check-imports.mjs';
import { ROOT } from './lib/paths.mjs';

const root = resolve(process.argv[2] ?? ROOT);
const { text, code } = checkImports(root);
process.stdout.write(text);
process.exitCode = code;
