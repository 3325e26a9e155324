// Fails on an import that the tables in ARCHITECTURE.md forbid (npm's hoisting would let any sibling resolve), on state in modules, and on
// comments that have become harder to read.
// usage: node scripts/check-imports.mjs [ROOT]
import { resolve } from 'node:path';
import { checkImports } from './lib/check-imports.mjs';
import { styleComplaints } from './lib/comment-style.mjs';
import { ROOT } from './lib/paths.mjs';

const root = resolve(process.argv[2] ?? ROOT);
const { text, code } = checkImports(root);
// The bounds of comments are those of this repository.
const complaints = root === ROOT ? styleComplaints(root) : [];
process.stdout.write([...complaints, text].join('\n'));
process.exitCode = complaints.length > 0 ? 1 : code;
